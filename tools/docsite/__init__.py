"""Builds the parts of the documentation that follow from the code: pictures, tables, formulas, the reference."""
