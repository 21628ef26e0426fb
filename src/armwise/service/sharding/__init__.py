"""Several databases behind one service: an engine for each and one merged model.

May import the engine and what lies below it. Architecture invariant: what holds of one database holds of each; one
application on one database never comes here.
"""
