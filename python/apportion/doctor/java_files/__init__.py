"""Readers of Java's files: class files in jars, and properties files."""
