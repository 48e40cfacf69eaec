"""Tools that read event logs: the reader, explanations, advice, simulations and reports."""
