"""Local rewrite rules: replacements for one node whose operands are already simplified."""
