"""Choosing under constraints: budgets that are held, a spend rate, and a baseline that is never much worse."""
