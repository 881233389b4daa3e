"""Threads for compiled code: a ticket pool.

The master publishes a job as one 64-bit word ``epoch:24 | chunks:20 | next:20``, and all threads, itself included, take chunks by adding 1
to it. The word contains the number of chunks, so a late worker can never run a stale job, and a descheduled worker delays no other thread
unless it has a chunk. Workers are Python's own daemon threads inside one foreign call (which does not hold the GIL); without work they spin
for a while, then wait on a futex, or, where there is none, sleep for short intervals.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from functools import lru_cache

from irscope.backends import cache, llvm_compile
from irscope.source import UserError
from irscope.source.cores import available_threads

_WORDS = 64 + 512  # the words of the context; from 64 on the scratch memory of each thread, the caller's first
_SPIN, _STOP, _EPOCH, _SCRATCH = 26, 27, 32, 64
_MOST = 512
_pools: dict[int, ThreadPool] = {}
_making = threading.Lock()


def pool(threads: int) -> ThreadPool:
    """The pool of this many threads, created on first use."""
    with _making:
        found = _pools.get(threads)
        if found is None or not found.alive:
            found = _pools[threads] = ThreadPool(threads)
        return found


class ThreadPool:
    """``threads - 1`` workers, and the calling thread. ``lock`` is held while a job of this pool runs."""

    def __init__(self, threads: int) -> None:
        if not 2 <= threads <= _MOST:
            raise ValueError(f"a pool has 2 to {_MOST} threads, not {threads}")
        self.threads = threads
        self.alive = True
        self.lock = threading.Lock()
        code = _runtime()
        self._memory = ctypes.create_string_buffer(_WORDS * 8 + 64)
        self.address = (ctypes.addressof(self._memory) + 63) // 64 * 64
        self._words = (ctypes.c_int64 * _WORDS).from_address(self.address)
        self._words[_SPIN] = 20_000 if threads <= available_threads() else 200
        self._scratch: list[object] = []
        self._scratch_bytes = -1
        self.reserve(0)
        work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.addresses["irscope_work"])
        self._wake = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses["irscope_wake"])
        self.workers = [threading.Thread(target=work, args=(self.address, i), daemon=True, name=f"irscope-{i}") for i in range(1, threads)]
        for number, worker in enumerate(self.workers):
            try:
                worker.start()
            except RuntimeError:  # a limit on threads, or on the memory for their stacks, is reached
                del self.workers[number:]
                self.stop()
                raise UserError(f"the system starts {number + 1} of the {threads} threads and no more",
                                f"--threads {number + 1}, or a higher limit on processes or memory (ulimit -u, ulimit -v)") from None

    def reserve(self, scratch_bytes: int) -> None:
        """Give each worker at least this much scratch memory. Only while no job runs."""
        if scratch_bytes <= self._scratch_bytes:
            return
        self._scratch_bytes = scratch_bytes
        self._scratch = []
        for i in range(1, self.threads):
            memory = ctypes.create_string_buffer(scratch_bytes + 64 + 4096)
            self._scratch.append(memory)
            # Staggered, so that the workers' copies do not share cache sets.
            self._words[_SCRATCH + i] = (ctypes.addressof(memory) + 63) // 64 * 64 + i * 1088 % 4032 // 64 * 64

    def stop(self) -> None:
        """Let the workers return."""
        if not self.alive:
            return
        self.alive = False
        self._words[_STOP] = 1
        self._wake(self.address)
        for worker in self.workers:
            worker.join(2.0)


@atexit.register
def _stop_all() -> None:
    for each in list(_pools.values()):
        each.stop()


def _forget() -> None:
    """Forget the pools in a forked child, where the workers do not exist."""
    global _making
    _making = threading.Lock()
    for each in _pools.values():
        each.alive = False
        each.lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def share_address() -> int:
    """The address of ``irscope_share``, which compiled programs call."""
    return _runtime().addresses["irscope_share"]


@lru_cache(maxsize=1)
def _runtime() -> llvm_compile.LoadedCode:
    machine = llvm_compile.host()
    text = runtime_text(machine.triple, sys.platform)
    name = cache.key("pool", text, machine.cpu, machine.features, llvm_compile.version())
    image = cache.read(name)
    if image is None:
        image = llvm_compile.object_code(text, machine)
        cache.write(name, image)
    return llvm_compile.LoadedCode([image], ["irscope_share", "irscope_work", "irscope_wake"])


def runtime_text(triple: str, platform: str) -> str:
    """The pool in LLVM text, for a target."""
    if triple.startswith(("x86", "i686")):
        pause, declare = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    elif triple.startswith("aarch64"):
        pause, declare = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    else:
        pause, declare = "", ""
    futex = {"x86_64": 202, "aarch64": 98, "riscv64": 98}.get(triple.split("-", 1)[0]) if platform == "linux" else None
    if futex is not None:
        declare += "\ndeclare i64 @syscall(i64, ...)\ndeclare i32 @sched_yield()"
        sleep = f"%slept = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch.at, i64 128, i32 %w, ptr null)"
        wake = f"%woken = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch.at, i64 129, i32 2147483647)"
        rest = "%y = call i32 @sched_yield()"
    elif platform == "win32":
        declare += "\ndeclare void @Sleep(i32)\ndeclare i32 @SwitchToThread()"
        sleep, wake, rest = "call void @Sleep(i32 1)", "", "%y = call i32 @SwitchToThread()"
    else:
        declare += "\ndeclare i32 @usleep(i32)\ndeclare i32 @sched_yield()"
        sleep, wake, rest = "%slept = call i32 @usleep(i32 50)", "", "%y = call i32 @sched_yield()"
    return _TEXT.replace("PAUSE", pause).replace("DECLARE", declare).replace("SLEEP", sleep).replace("WAKE", wake).replace("REST", rest)


_TEXT = """DECLARE
define internal i1 @take(ptr %ctx, ptr %scratch.at) nounwind {
  %t = load atomic i64, ptr %ctx acquire, align 64
  %i = and i64 %t, 1048575
  %n0 = lshr i64 %t, 20
  %n = and i64 %n0, 1048575
  %c = icmp ult i64 %i, %n
  br i1 %c, label %try, label %no
try:
  %t2 = atomicrmw add ptr %ctx, i64 1 acq_rel
  %i2 = and i64 %t2, 1048575
  %m0 = lshr i64 %t2, 20
  %n2 = and i64 %m0, 1048575
  %c2 = icmp ult i64 %i2, %n2
  br i1 %c2, label %go, label %no
go:
  %pfn = getelementptr i64, ptr %ctx, i64 24
  %pd = getelementptr i64, ptr %ctx, i64 25
  %fn = load ptr, ptr %pfn
  %d = load ptr, ptr %pd
  %scratch = load ptr, ptr %scratch.at
  call void %fn(ptr %d, i64 %i2, i64 %n2, ptr %scratch)
  %done = getelementptr i64, ptr %ctx, i64 8
  %x = atomicrmw add ptr %done, i64 1 release
  ret i1 true
no:
  ret i1 false
}
define void @irscope_work(ptr %ctx, i64 %me) nounwind {
entry:
  %sleepers = getelementptr i64, ptr %ctx, i64 16
  %spin.at = getelementptr i64, ptr %ctx, i64 26
  %stop.at = getelementptr i64, ptr %ctx, i64 27
  %epoch.at = getelementptr i64, ptr %ctx, i64 32
  %slot = add i64 %me, 64
  %scratch.at = getelementptr ptr, ptr %ctx, i64 %slot
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ 0, %loop ], [ %k1, %again ], [ 0, %awake ], [ 0, %cancel ]
  %r = call i1 @take(ptr %ctx, ptr %scratch.at)
  br i1 %r, label %loop, label %idle
idle:
  PAUSE
  %k1 = add i64 %k, 1
  %limit = load i64, ptr %spin.at
  %spinning = icmp slt i64 %k1, %limit
  br i1 %spinning, label %again, label %tired
again:
  br label %loop
tired:
  %o = atomicrmw add ptr %sleepers, i64 1 seq_cst
  %w = load atomic i32, ptr %epoch.at seq_cst, align 64
  %s0 = load atomic i64, ptr %stop.at seq_cst, align 8
  %stopped = icmp ne i64 %s0, 0
  br i1 %stopped, label %out, label %check
check:
  %t = load atomic i64, ptr %ctx seq_cst, align 64
  %i = and i64 %t, 1048575
  %n0 = lshr i64 %t, 20
  %n = and i64 %n0, 1048575
  %c = icmp ult i64 %i, %n
  br i1 %c, label %cancel, label %nap
nap:
  SLEEP
  br label %awake
awake:
  %o2 = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br label %loop
cancel:
  %o3 = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br label %loop
out:
  %o4 = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  ret void
}
define void @irscope_wake(ptr %ctx) nounwind {
  %epoch.at = getelementptr i64, ptr %ctx, i64 32
  %x = atomicrmw add ptr %epoch.at, i32 1 seq_cst
  WAKE
  ret void
}
define void @irscope_share(ptr %ctx, ptr %fn, ptr %data, i64 %n, ptr %scratch) nounwind {
entry:
  %done = getelementptr i64, ptr %ctx, i64 8
  %sleepers = getelementptr i64, ptr %ctx, i64 16
  %pfn = getelementptr i64, ptr %ctx, i64 24
  %pd = getelementptr i64, ptr %ctx, i64 25
  store ptr %fn, ptr %pfn
  store ptr %data, ptr %pd
  %scratch.at = getelementptr ptr, ptr %ctx, i64 64
  store ptr %scratch, ptr %scratch.at
  store atomic i64 0, ptr %done monotonic, align 64
  %t = load atomic i64, ptr %ctx monotonic, align 64
  %e = lshr i64 %t, 40
  %e1 = add i64 %e, 1
  %es = shl i64 %e1, 40
  %ns = shl i64 %n, 20
  %nt = or i64 %es, %ns
  store atomic i64 %nt, ptr %ctx seq_cst, align 64
  %s = load atomic i64, ptr %sleepers seq_cst, align 64
  %any = icmp ne i64 %s, 0
  br i1 %any, label %wake, label %mine
wake:
  call void @irscope_wake(ptr %ctx)
  br label %mine
mine:
  %more = call i1 @take(ptr %ctx, ptr %scratch.at)
  br i1 %more, label %mine, label %join
join:
  %k = phi i64 [ 0, %mine ], [ %k1, %spin ], [ 0, %rest ]
  %dn = load atomic i64, ptr %done acquire, align 64
  %z = icmp eq i64 %dn, %n
  br i1 %z, label %fin, label %wait
wait:
  PAUSE
  %k1 = add i64 %k, 1
  %sp = icmp slt i64 %k1, 2000
  br i1 %sp, label %spin, label %rest
spin:
  br label %join
rest:
  REST
  br label %join
fin:
  ret void
}
"""
