"""Functions in jax and torch that were compiled wrong or without end, and their neighbours: ``test_regressions.py`` runs their texts."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.regressions.programs import MATRIX, Array, Program

if TYPE_CHECKING:
    Made = Iterator[tuple[Program, list[Array]]]

# ---- jax: what stands behind conv(f) + f, and what moves around reductions and products

RESIDUALS = {
    "joined_after": "concatenate([c, residual(f)], 1)", "joined_before": "concatenate([residual(f), c], 1)",
    "joined_along_rows": "concatenate([residual(f), h], 2)", "joined_with_the_operand": "concatenate([f, residual(f)], 1)",
    "turned": "tokens(residual(f)) + 0", "tokens_joined_after": "concatenate([t, tokens(residual(f))], 1)",
    "tokens_joined_before": "concatenate([tokens(residual(f)), t], 1)", "product": "concatenate([t, tokens(conv(f) * f)], 1)",
    "silu": "concatenate([t, tokens(silu(conv(f)) + f)], 1)", "of_one_tap": "concatenate([t, tokens(conv1(f) + f)], 1)",
    "tokens_padded": "pad(tokens(residual(f)), ((0, 0), (1, 2), (0, 0)))", "padded": "pad(residual(f), ((0, 0), (0, 0), (1, 1), (1, 1)))",
    "twice": "conv(residual(f))", "twice_joined": "concatenate([f, conv(residual(f)) + f], 1)", "channels_last": "last(residual(f)) + 0",
    "channels_last_joined": "concatenate([last(residual(f)), s], 3)", "channels_last_joined_above": "concatenate([r, last(residual(f))], 1)",
    "of_two_images": "concatenate([tt, tokens(residual(ff))], 1)", "by_channel": "concatenate([t, tokens(depthwise(f) + f + b)], 1)",
}
MOVED = {
    "attention_8": "T(attention(q8, q8, q8)) + 0", "attention_behind": "T(v) @ T(softmax(q @ T(k)))",
    "attention_of_heads": "attention(h, h, h).transpose(0, 2, 1, 3).reshape(2, 32, 32)", "sigmoid_attention": "T(sigmoid(q @ T(k)) @ v) + 0",
    "divided_by_sums": "(lambda a: (a / abs(a).sum(-1, keepdims=True)) @ v)(q @ T(k))", "attention_scaled": "attention(q, k, v) * 2 + v.sum()",
    "attention_summed": "attention(q, k, v).sum(1)", "attention_normalised": "norm(attention(q, k, v))", "softmax": "T(softmax(q @ T(w))) + 0",
    "norm_times_matrix": "T(norm(q) @ T(w)) + 0", "two_products": "T(q @ T(k) @ v) + 0", "four_products": "T(q @ T(k) @ q @ T(k) @ v) + 0",
    "linear_attention": "softmax(q) @ (softmax(T(k)) @ v)", "linear_attention_turned": "T(softmax(q) @ (T(k) @ v)) + 0",
    "cosines": "T((q / length(q)) @ T(k / length(k))) + 0", "variance_of_a_product": "(q @ T(k)).var(-1)",
    "arg_max_of_attention": "argmax(attention(q, k, v), -1)", "attention_strided": "attention(q, k, v)[:, ::2]",
    "attention_reversed": "attention(q, k, v)[:, ::-1] + 0", "attention_joined": "concatenate([attention(q, k, v), v], -1)",
    "attention_padded": "pad(attention(q, k, v), ((0, 0), (1, 1), (0, 0)))", "attention_times_matrix": "T(attention(q, k, v) @ w16) + 0",
    "gradient_of_attention": "grad(lambda q: attention(q, k, v).sum())(q)", "attention_features_first": "einsum('bqk,bkd->dbq', softmax(q @ T(k)), v)",
    "merged": "norm(merged(x))", "merged_by_slices": "norm(concatenate([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1))",
    "reversed_windows_rolled": "norm(roll(windows(x), (3, 3), (1, 2)))", "reversed_windows_added": "norm(windows(x) + x)",
    "channels_first": "norm(x.reshape(1, 16, -1).transpose(0, 2, 1))", "norm_in_windows": "windows(norm(x))",
    "norm_channels_first": "norm(x).transpose(0, 3, 1, 2) + 0", "softmax_permuted": "softmax(x).reshape(4, 7, 7, 16).transpose(3, 0, 1, 2) + 0",
    "of_all_but_channels": "(x - x.mean((0, 1, 2), keepdims=True)) / sqrt(x.var((0, 1, 2), keepdims=True) + 1e-5)", "twice_normalised": "norm(norm(x))",
}
SHAPES = {
    "f": (1, 16, 8, 8), "ff": (2, 16, 8, 8), "c": (1, 4, 8, 8), "h": (1, 16, 3, 8), "t": (1, 1, 16), "tt": (2, 1, 16), "s": (1, 8, 8, 3), "b": (16, 1, 1),
    "r": (1, 2, 8, 16), "wc": (16, 16, 3, 3), "w1": (16, 16, 1, 1), "wd": (16, 1, 3, 3),
}
MOVED_SHAPES = {"q": (2, 32, 16), "k": (2, 32, 16), "v": (2, 32, 16), "q8": (2, 8, 16), "h": (2, 4, 32, 8), "w": (24, 16), "w16": (16, 16), "x": (1, 14, 14, 16)}


def jax_functions() -> Made:
    """A program of every function, and what XLA gives."""
    import jax
    import jax.numpy as jnp

    from tests.programs.peers import by_xla

    def turned(x: Any) -> Any:
        return jnp.swapaxes(x, -1, -2)

    def convolved(x: Any, w: Any, groups: int = 1) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=groups)

    def norm(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    words = {
        **{name: getattr(jnp, name) for name in ("concatenate", "pad", "argmax", "einsum", "roll", "sqrt", "abs")}, "T": turned, "norm": norm,
        "softmax": jax.nn.softmax, "sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu, "grad": jax.grad,
        "tokens": lambda x: x.reshape(x.shape[0], 16, 64).transpose(0, 2, 1), "last": lambda x: x.transpose(0, 2, 3, 1),
        "attention": lambda q, k, v: jax.nn.softmax(q @ turned(k)) @ v, "length": lambda x: jnp.linalg.norm(x, axis=-1, keepdims=True),
        "merged": lambda x: x.reshape(1, 7, 2, 7, 2, -1).transpose(0, 1, 3, 2, 4, 5).reshape(1, 7, 7, -1),
        "windows": lambda x: x.reshape(1, 2, 2, 7, 7, -1).transpose(0, 1, 3, 2, 4, 5).reshape(1, 14, 14, -1),
    }
    for prefix, table, shapes in (("residual", RESIDUALS, SHAPES), ("moved", MOVED, MOVED_SHAPES)):
        for name, source in table.items():
            def function(given: Any, source: str = source) -> Any:
                made = {
                    "conv": lambda x: convolved(x, given["wc"]), "conv1": lambda x: convolved(x, given["w1"]),
                    "depthwise": lambda x: convolved(x, given["wd"], 16), "residual": lambda x: convolved(x, given["wc"]) + x,
                }
                return eval(source, {**words, **made, **given})
            types = {key: jax.ShapeDtypeStruct(shape, np.float32) for key, shape in shapes.items()}
            text = jax.jit(function).lower(types).as_text(dialect="hlo")
            program = Program(f"{prefix}_{name}", ".hlo", text)
            yield program, by_xla(text, list(program.inputs().values()))


# ---- torch: views and copies that are written

WRITTEN = {
    "contiguous_copy": "y=x.t().contiguous(); y[0]=1.; return x,y", "contiguous_alias": "x=x.clone(); y=x.contiguous(); y[0]=1.; return x,y",
    "chunk_contiguous": "x=x.clone(); a,b=x.chunk(2,1); b=b.contiguous(); b[0]=1.; return x,b",
    "reshape_view": "x=x.clone(); y=x.reshape(-1); y[0]=9.; return x,y", "reshape_copy": "x=x.clone(); y=x.t().reshape(-1); y[0]=9.; return x,y",
    "flatten_copy": "x=x.clone(); y=x[:,:2].flatten(); y.add_(5.); return x,y", "flatten_view": "x=x.clone(); y=x[:2].flatten(); y.add_(5.); return x,y",
    "to_same": "x=x.clone(); y=x.to(torch.float32); y.mul_(2.); return x,y",
    "to_copy": "x=x.clone(); y=x.to(torch.float32,copy=True); y.mul_(2.); return x,y", "float_same": "x=x.clone(); y=x.float(); y.mul_(2.); return x,y",
    "type_as": "x=x.clone(); y=x.type_as(x); y.mul_(2.); return x,y", "dropout_eval": "x=x.clone(); y=F.dropout(x,0.5,False); y.mul_(2.); return x,y",
    "expand_write": "x=x.clone(); y=x.expand(2,4,6)[0]; y[0]=3.; return x,y", "detach_alias": "x=x.clone(); y=x.detach(); y[1]=3.; return x,y",
    "unflatten_alias": "x=x.clone(); y=x.unflatten(1,[2,3]); y[:,0]=3.; return x,y",
    "squeeze_alias": "x=x.clone(); y=x.unsqueeze(0).squeeze(); y[:,0]=3.; return x,y",
    "broadcast_to": "x=x.clone(); y=x.broadcast_to(4,6); y[:,0]=3.; return x,y",
    "index_copy": "x=x.clone(); y=x[torch.tensor([0,1])]; y[0]=3.; return x,y",
    "movedim_alias": "x=x.clone(); y=x.movedim(0,1).swapaxes(0,1).narrow(0,1,2); y.zero_(); return x,y",
    "split_list_alias": "x=x.clone(); l=x.split(2); l[1].add_(3.); return x,torch.cat(l)", "input_written": "x.add_(1.); return x*2",
    "result_twice": "y=x+1; z=y; z.mul_(2); return y,z", "slice_of_itself": "x=x.clone(); x[1:]=x[:-1]*2; return x",
    "slices_overlap": "x=x.clone(); x[:,1:].copy_(x[:,:-1].clone()); return x", "where_positive": "x=x.clone(); x[x>0]=x[x>0]*2; return x",
    "other_types": "y=x.to(torch.float64); y+=1; z=x.long().clone(); z+=1; return y,z",
    "real_view": "z=torch.view_as_complex(x.reshape(4,3,2).clone()); z.real.mul_(2.); return torch.view_as_real(z)",
    "swapped": "a=x[0].clone(); b=x[1].clone(); a,b=b,a; a.add_(1); return a,b",
    "many_in_place": "x=x.clone(); x.cumsum_(1); x.t_(); x.squeeze_(0); x.unsqueeze_(0); return x",
    "diagonals": "x=x.clone(); x.fill_diagonal_(5.); x.diagonal().mul_(2); return x",
    "other_view_of_bits": "x=x.clone(); y=x.view(torch.int32); y[0]=0; return x",
}


def torch_functions() -> Made:
    """The same of torch, traced and scripted; what torch itself refuses is left out."""
    import linecache

    import torch

    from tests.programs.peers import array_of

    source = "\n".join(f"def {name}(x: Tensor):\n    {body}\n" for name, body in WRITTEN.items())
    linecache.cache["<written>"] = (len(source), None, source.splitlines(True), "<written>")
    space: dict[str, Any] = {"__name__": "written", "torch": torch, "F": torch.nn.functional, "Tensor": torch.Tensor}
    exec(compile(source, "<written>", "exec"), space)
    for name in WRITTEN:
        for mode in ("traced", "scripted"):
            try:
                given = torch.from_numpy(MATRIX.copy())
                made = torch.jit.trace(space[name], (given,), check_trace=False) if mode == "traced" else torch.jit.script(space[name])
                out = made(torch.from_numpy(MATRIX.copy()))
            except RuntimeError:
                continue
            wanted = [array_of(t) for t in (out if isinstance(out, tuple) else [out])]
            yield Program(f"written_{name}_{mode}", ".txt", str(made.inlined_graph)), wanted
