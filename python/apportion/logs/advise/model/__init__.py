"""Measured stages, facts about their plans, and findings about them."""
