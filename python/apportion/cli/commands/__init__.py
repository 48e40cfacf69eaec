"""The commands of `apportion`, each in a module of its own."""
