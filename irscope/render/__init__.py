"""Graphs for people: terminal trees, drawings, pages."""
