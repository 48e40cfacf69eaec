"""Rules that find a kind of problem each. They do not know of each other's findings."""
