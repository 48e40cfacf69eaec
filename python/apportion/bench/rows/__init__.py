"""Results of a query: a digest to compare them by, and an order without ties."""
