"""The rules, one file each; a new file here is a new rule."""
