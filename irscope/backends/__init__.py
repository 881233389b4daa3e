"""Tile IR to machine code: LLVM text, compiling, caching, threads, running."""
