"""Tile IR to machine code: LLVM text, compilation, caching, threads, execution."""
