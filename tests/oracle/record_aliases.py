"""Writes what torch gives for programs that write to views and copies: every view operator with every write in place, traced and scripted.

    python tests/oracle/record_aliases.py cases.npz [--sample N] [--layouts layouts.json [--seed 0]]

``--layouts`` writes the texts of traced calls of torch's operator samples, on operands of every order of dimensions: their types state
the strides of all values. Needs torch; everything that reads the files does not.
"""
from __future__ import annotations

import argparse
import itertools
import json
import linecache
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.oracle.record_torch import filled, flat, operator_samples, tensors_in
from tests.oracle.torch_cases import Case, write_cases

VIEWS = {
    "contiguous": "x.contiguous()",
    "t_contiguous": "x.t().contiguous()",
    "contiguous_cl": "x.view(2,2,3,2).contiguous(memory_format=torch.channels_last)",
    "cl_contiguous": "x.view(2,2,3,2).contiguous(memory_format=torch.channels_last).contiguous(memory_format=torch.channels_last)",
    "reshape": "x.reshape(-1)",
    "t_reshape": "x.t().reshape(-1)",
    "slice_reshape": "x[:, :4].reshape(-1)",
    "rows_reshape": "x[1:3].reshape(-1)",
    "reshape_split": "x.t().reshape(2,3,4)",
    "reshape_as": "x.t().reshape_as(x)",
    "flatten": "x.flatten()",
    "t_flatten": "x.t().flatten()",
    "flatten_one": "x.flatten(1)",
    "ravel": "x.ravel()",
    "t_ravel": "x.t().ravel()",
    "slice_flatten": "x[:, :2].flatten()",
    "unflatten": "x.t().unflatten(0,(2,3))",
    "to_same": "x.to(torch.float32)",
    "to_copy": "x.to(torch.float32,copy=True)",
    "to_other": "x.to(torch.float64)",
    "to_like": "x.to(x)",
    "float": "x.float()",
    "double": "x.double()",
    "type_as": "x.type_as(x)",
    "cpu": "x.cpu()",
    "to_cl": "x.view(2,2,3,2).to(memory_format=torch.channels_last)",
    "dropout": "F.dropout(x,0.5,False)",
    "dropout0": "F.dropout(x,0.0,True)",
    "alpha_dropout": "F.alpha_dropout(x,0.5,False)",
    "detach": "x.detach()",
    "alias": "torch.ops.aten.alias(x)",
    "data": "x.data",
    "expand1": "x.expand(1,4,6)",
    "expand_row": "x.expand(2,4,6)[0]",
    "expand": "x[:1].expand(4,6)",
    "broadcast_to": "x.broadcast_to(4,6)",
    "expand_as": "x.expand_as(x)",
    "view": "x.view(6,4)",
    "view_as": "x.view_as(x)",
    "view_dtype": "x.view(torch.int32).view(torch.float32)",
    "select": "x[1]",
    "select_col": "x[:,2]",
    "slice": "x[1:3]",
    "slice_step": "x[:,1::2]",
    "slice_all": "x[:]",
    "narrow": "x.narrow(1,1,3)",
    "chunk": "x.chunk(2,1)[1]",
    "chunk_contig": "x.chunk(2,1)[1].contiguous()",
    "chunk0_contig": "x.chunk(2,0)[1].contiguous()",
    "split": "x.split(4,1)[1]",
    "split_sizes": "x.split([1,5],1)[1]",
    "tensor_split": "x.tensor_split(3,1)[2]",
    "tensor_split_at": "x.tensor_split((1,3),1)[1]",
    "unbind": "x.unbind(1)[2]",
    "hsplit": "x.hsplit(2)[1]",
    "vsplit": "x.vsplit(2)[1]",
    "dsplit": "x.view(2,3,4).dsplit(2)[1]",
    "transpose": "x.transpose(0,1)",
    "t": "x.t()",
    "permute": "x.view(2,2,6).permute(2,0,1)",
    "movedim": "x.view(2,2,6).movedim(0,2)",
    "moveaxis": "x.view(2,2,6).moveaxis(0,2)",
    "swapaxes": "x.swapaxes(0,1)",
    "swapdims": "x.swapdims(0,1)",
    "mT": "x.mT",
    "T": "x.T",
    "mH": "x.mH",
    "H": "x.H",
    "adjoint": "x.adjoint()",
    "squeeze": "x.view(4,1,6).squeeze()",
    "squeeze_dim": "x.view(4,1,6).squeeze(1)",
    "squeeze_no": "x.squeeze(0)",
    "unsqueeze": "x.unsqueeze(1)",
    "diagonal": "x.diagonal()",
    "diagonal1": "x.diagonal(-1,1,0)",
    "linalg_diagonal": "torch.linalg.diagonal(x)",
    "diag": "torch.diag(x)",
    "unfold_dis": "x.unfold(1,2,2)",
    "unfold_gap": "x.unfold(1,2,3)",
    "unfold_over": "x.unfold(1,3,1)",
    "as_strided": "x.as_strided((3,2),(6,2),1)",
    "as_strided_t": "x.t().as_strided((2,2),(2,7),3)",
    "as_strided_d": "x[1].as_strided((2,2),(1,6))",
    "as_strided_over": "x.as_strided((3,4),(2,1))",
    "real": "torch.view_as_complex(x.view(4,3,2)).real",
    "imag": "torch.view_as_complex(x.view(4,3,2)).imag",
    "conj_real": "torch.view_as_complex(x.view(4,3,2)).conj().real",
    "conj_imag": "torch.view_as_complex(x.view(4,3,2)).conj().imag",
    "view_as_complex_view_as_real": "torch.view_as_real(torch.view_as_complex(x.view(4,3,2)))",
    "conj": "torch.view_as_complex(x.view(4,3,2)).conj()",
    "resolve_conj": "torch.view_as_complex(x.view(4,3,2)).conj().resolve_conj()",
    "resolve_conj0": "torch.view_as_complex(x.view(4,3,2)).resolve_conj()",
    "resolve_neg": "torch.view_as_complex(x.view(4,3,2)).conj().imag.resolve_neg()",
    "conj_phys": "torch.conj_physical(x)",
    "conj_phys_c": "torch.conj_physical(torch.view_as_complex(x.view(4,3,2)))",
    "conj_contig": "torch.view_as_complex(x.view(4,3,2)).conj().contiguous()",
    "conj_clone": "torch.view_as_complex(x.view(4,3,2)).conj().clone().resolve_conj()",
    "cmH": "torch.view_as_complex(x.view(4,3,2)).mH",
    "realreal": "x.real",
    "conjreal": "x.conj()",
    "clone": "x.clone()",
    "t_clone_view": "x.t().clone().t().view(-1)",
    "clone_contig": "x.t().clone(memory_format=torch.contiguous_format).view(-1)",
    "atleast1": "torch.atleast_1d(x)",
    "atleast2": "torch.atleast_2d(x)",
    "atleast3": "torch.atleast_3d(x)",
    "atleast3v": "torch.atleast_3d(x[0])",
    "atleast1s": "torch.atleast_1d([x[0],x])[1]",
    "broadcast_tensors": "torch.broadcast_tensors(x,x[0])[0]",
    "meshgrid": "torch.meshgrid(x[0],x[1],indexing='ij')[0][:,0]",
    "meshgridxy": "torch.meshgrid(x[0],x[1],indexing='xy')[1][:,0]",
    "positive": "torch.positive(x)",
    "sum_to_size": "x.sum_to_size(4,6)",
    "sum_to_size1": "x.sum_to_size(4,1)",
    "index": "x[torch.tensor([0,2])]",
    "index_none": "x[None]",
    "ellipsis": "x[...]",
    "index_select": "x.index_select(0,torch.tensor([1,2]))",
    "gather": "x.gather(1,torch.zeros(4,2,dtype=torch.long))",
    "masked_select": "x[x>0]",
    "relu": "torch.relu(x)",
    "relu_t_reshape": "torch.relu(x.t()).reshape(-1)",
    "relu_t_contig": "torch.relu(x.t()).contiguous()",
    "relu_tt": "torch.relu(x.t()).t().reshape(-1)",
    "add_t": "(x.t()+1).t().contiguous()",
    "einsum": "torch.einsum('ij->ji',x)",
    "einsum_diag": "torch.einsum('ii->i',x[:,:4])",
    "cat1": "torch.cat([x])",
    "stack": "torch.stack([x,x])",
    "cartesian": "torch.cartesian_prod(x[0])",
    "block": "torch.block_diag(x)",
    "roll0": "x.roll(0,0)",
    "flip": "x.flip(0)",
    "rot0": "torch.rot90(x,0)",
    "pad0": "F.pad(x,(0,0))",
    "repeat1": "x.repeat(1,1)",
    "tile1": "x.tile(1,1)",
    "repeat_interleave": "x.repeat_interleave(1,0)",
    "where": "torch.where(x>0,x,x)",
    "clamp": "x.clamp(min=-100.)",
    "matrix_power": "torch.linalg.matrix_power(x[:,:4],1)",
    "chain": "torch.chain_matmul(x,x.t())",
    "tril": "x.tril(9)",
    "movedim_narrow": "x.movedim(0,1).swapaxes(0,1).narrow(0,1,2)",
    "reshape_turned": "x.t().reshape(6,4)",
    "interpolate": "F.interpolate(x.view(1,1,4,6),scale_factor=1.0,mode='nearest')",
    "softmax_r": "x.t().softmax(0).t().reshape(-1)",
    "layer_norm_reshape": "F.layer_norm(x.t(),(4,)).t().reshape(-1)",
    "matmul_reshape": "(x.t()@x).t().reshape(-1)",
    "linear_contiguous": "F.linear(x,x).t().contiguous()",
    "sort": "x.t().sort(0)[0].t().reshape(-1)",
    "cumsum": "x.t().cumsum(0).t().reshape(-1)",
    "mean_r": "x.view(2,2,6).permute(2,0,1).mean(0).t().reshape(-1)",
    "zeros_like": "torch.zeros_like(x.t()).t().reshape(-1)",
    "conv": "F.conv2d(x.view(1,2,2,6).contiguous(memory_format=torch.channels_last),torch.ones(2,2,1,1)).permute(0,2,3,1).reshape(-1)",
    "pool": "F.max_pool2d(x.view(1,2,2,6).contiguous(memory_format=torch.channels_last),1).permute(0,2,3,1).reshape(-1)",
    "index_t": "x.t()[torch.tensor([0,2])].t().reshape(-1)",
    "index_col": "x[:,torch.tensor([0,2])].t().reshape(-1)",
    "where_t": "torch.where(x.t()>0,x.t(),1.).t().reshape(-1)",
    "masked_fill_t": "x.t().masked_fill(x.t()>0,1.).t().reshape(-1)",
    "movedim3": "x.view(2,3,4).transpose(0,1).flatten(1)",
    "squeeze_view": "x.view(4,6,1).transpose(0,2).reshape(6,4)",
    "empty": "x[:0].reshape(-1)",
    "one": "x[:1,:1].t().contiguous()",
    "onerow": "x[:1].t().contiguous()",
}
"""What y is of x, a matrix of 4 x 6 that the program has made: views, copies, and what gives x itself."""
WRITES = {
    "mul": "y.mul_(2.)",
    "add": "y.add_(y)",
    "fill": "y.fill_(7.)",
    "zero": "y.zero_()",
    "copy": "y.copy_(y*3)",
    "relu": "y.relu_()",
    "row": "y[0]=5.",
    "setall": "y[:]=9.",
    "iadd": "y+=1",
    "idx": "y[torch.tensor([0])]=4.",
    "sub": "y.sub_(1)",
    "neg": "y.neg_()",
    "cumsum": "y.cumsum_(0)",
    "fill_diagonal": "y.fill_diagonal_(3.)",
    "masked": "y.masked_fill_(y>0,2.)",
    "t": "y.t_(); y.mul_(3.)",
    "unsq": "y.unsqueeze_(0); y.add_(1.)",
    "sq": "y.squeeze_(); y.add_(1.)",
    "tr": "y.transpose_(0,1); y.add_(1.)",
    "idxput": "y.index_fill_(0,torch.tensor([0]),6.)",
    "viaflat": "y.flatten()[0]=8.",
    "viaview": "y.view(-1)[0]=8.",
    "clamp": "y.clamp_(min=0.)",
    "srcwrite": "x.mul_(2.)",
    "srcrow": "x[1]=3.",
    "srct": "x.t_(); x.mul_(2.)",
    "none": "pass",
}
"""What is written then, to y or to x."""
FLOWS = """
def if_alias(x: Tensor):
    x=x.clone(); y=x
    if bool(x.sum()>0): y=x*2
    y.add_(1.)
    return x,y


def if_alias_dead(x: Tensor):
    x=x.clone(); y=x
    if bool(x.sum()>0): y=x*2
    y.add_(1.)
    return y


def if_inplace(x: Tensor):
    x=x.clone(); y=x
    if bool(x.sum()>0): x+=1
    x*=2
    return x,y


def if_inplace_else(x: Tensor):
    x=x.clone(); y=x
    if bool(x.sum()>0): x+=1
    else: x-=1
    x*=2
    return x,y


def if_view(x: Tensor):
    x=x.clone(); y=x[0]
    if bool(x.sum()>0): y=x[1]
    z=y+1
    return x,z


def if_view_write(x: Tensor):
    x=x.clone(); y=x[0]
    if bool(x.sum()>0): y=x[1]
    y.zero_()
    return x


def if_pair(x: Tensor):
    if bool(x.sum()>0):
        a=x+1; b=a
    else:
        a=x-1; b=x-2
    a.mul_(2.)
    return a,b


def if_t(x: Tensor):
    x=x.clone()[:, :4]
    if bool(x.sum()>0): x.t_()
    return x


def if_t_inner(x: Tensor):
    x=x.clone()[:, :4]
    if bool(x.sum()>0): x=(x*2).t_()
    return x


def if_reshape(x: Tensor):
    x=x.clone(); y=x.t()
    if bool(x.sum()>0): y=y.clone()
    z=y.reshape(-1); z.zero_()
    return x


def while_carry(x: Tensor):
    x=x.clone(); y=x
    while bool(y.sum()<500): y+=1
    return x,y


def while_carry_dead(x: Tensor):
    y=x.clone()
    while bool(y.sum()<500): y+=1
    return y


def while_fresh(x: Tensor):
    x=x.clone(); y=x
    while bool(y.sum()<500): y=y+1
    y.mul_(2.)
    return x,y


def while_fresh_ok(x: Tensor):
    x=x.clone(); y=x
    while bool(y.sum()<500): y=y+1
    return x,y*2


def while_swap(x: Tensor):
    a=x+1; b=x*2
    while bool(a.sum()<500):
        a.add_(1.)
        a,b=b,a
    return a,b


def while_captured(x: Tensor):
    x=x.clone(); row=x[1]
    while bool(x.sum()<500): row.add_(3.)
    return x,row


def while_rebind(x: Tensor):
    x=x.clone(); y=x+1
    while bool(y.sum()<500):
        y.add_(1.)
        y=x.view(4,6)
        x.add_(2.)
    return x,y


def for_data(x: Tensor):
    y=x.clone(); z=y.view(-1)
    for i in range(int(x[0,0].item()+10)):
        z[i]=float(i)
    return y


def list_alias(x: Tensor):
    x=x.clone(); l=[x,x.t()]
    l[1].mul_(2.)
    l[0][0]=5.
    return x,l[1]


def dict_alias(x: Tensor):
    d={'a':x.clone()}; y=d['a'].reshape(-1); y[:3]=7.
    return d['a'],y


def const_clone(x: Tensor):
    n=torch.tensor(3); m=n.clone(); m+=1
    return n,m,x


def const_to(x: Tensor):
    n=torch.tensor(3); m=n.to(torch.int64); m+=1; k=n.to(torch.float32); k+=1
    return n,m,k


def const_alias(x: Tensor):
    n=torch.tensor(3); m=n.view(1); m+=1
    return n,m


def const_branch(x: Tensor):
    n=torch.tensor(x.size(0)); y=x
    if bool(x.sum()>0): y=x*n
    return y, n+x


def const_float(x: Tensor):
    n=torch.tensor(2.); m=n.float(); m.mul_(3.); return n,m


def narrow_t(x: Tensor):
    x=x.clone(); y=x.narrow(1,torch.tensor(2),2); y.mul_(3.); return x,y


def select_data(x: Tensor):
    x=x.clone(); i=int(x.argmax().item())%4; y=x[i]; y.zero_(); return x,y


def fn_alias(x: Tensor):
    x=x.clone(); y=F.dropout(F.relu(x,inplace=True),0.3,False); y+=1; return x,y


def select_data_reshape(x: Tensor):
    x=x.clone(); i=int(x.argmax().item())%4; y=x[i].reshape(2,3); y.zero_(); return x,y


def copy_overlap(x: Tensor):
    x=x.clone(); x[:,1:].copy_(x[:,:-1].clone()); return x


def while_inner_alias(x: Tensor):
    x=x.clone(); y=x*1
    while bool(y.sum()<500):
        z=y.t().contiguous(); z.add_(5.)
        y=y.t().t().contiguous(); y.add_(1.)
    return x,y


def if_list_alias(x: Tensor):
    x=x.clone(); l=[x+1,x]
    if bool(x.sum()>0): l[0]=x
    l[0].add_(1.)
    return x,l[0]


def if_list_write(x: Tensor):
    x=x.clone(); l=[x,x+1]
    if bool(x.sum()>0):
        l[0].mul_(2.)
        l[1]=l[1]-3
    l[0].add_(1.)
    return x,l[0],l[1]


def if_list_fresh(x: Tensor):
    l=[x+1,x*2]
    if bool(x.sum()>0): l[0]=x*3
    else: l[1]=x-1
    l[0].add_(1.); l[1].t().mul_(2.)
    return x,l[0],l[1]


def if_dict_alias(x: Tensor):
    x=x.clone(); d={'a':x}
    if bool(x.sum()>0): d['a']=x*2
    d['a'].zero_()
    return x


def if_optional_alias(x: Tensor):
    x=x.clone(); o: Optional[Tensor]=None
    if bool(x.sum()>0): o=x
    if o is not None: o.add_(1.)
    return x


def if_optional_fresh(x: Tensor):
    x=x.clone(); o: Optional[Tensor]=None
    if bool(x.sum()>0): o=x*2
    if o is not None:
        o.add_(1.)
        x.add_(o)
    return x


def if_view_read(x: Tensor):
    x=x.clone(); row=x[1]
    if bool(x.sum()>0): y=row+1
    else: y=row*2
    return row+y,x


def if_nested(x: Tensor):
    x=x.clone(); y=x*1
    if bool(x.sum()>0):
        z=y.abs()
        if bool(x[0,0]>0): z.add_(1.)
        else: y.mul_(2.)
        y.add_(z)
    else:
        x.view(-1)[:3].add_(1.)
    return x,y


def if_ways_apart(x: Tensor):
    a=x+1; b=x*2
    if bool(x.sum()>0): a,b=b,a
    a.mul_(3.)
    return a,b


def if_chain(x: Tensor):
    n=torch.linalg.inv(x[:2,:2]*x[1:3,1:3]+x[2:,2:4]); r=n*1
    if bool(x.sum()>0): r=n.reshape(2,2)
    r.zero_()
    return n


def reshape_chain(x: Tensor):
    n=torch.linalg.inv(x[:2,:2]*x[1:3,1:3]+x[2:,2:4]); y=n.reshape(4); z=y.reshape(1,4); z.zero_()
    return n


def while_list(x: Tensor):
    l=[x*1,x*2]
    while bool(l[0].sum()<500):
        l[0]=l[0]+1
        l[1].add_(1.)
    l[1].mul_(2.)
    return l[0],l[1]


def while_list_alias(x: Tensor):
    x=x.clone(); l=[x]
    while bool(l[0].sum()<500): l[0]=l[0]+1
    l[0].add_(1.)
    return x,l[0]


def while_list_write(x: Tensor):
    x=x.clone(); l=[x]
    while bool(l[0].sum()<500):
        l[0].add_(1.)
        l[0]=l[0]+1
    return l[0]


def while_read_before(x: Tensor):
    x=x.clone(); y=x; s=x.sum()
    while bool(y.sum()<500):
        s=s+x[0,0]
        y=y.add_(1.)
    return s,y


def while_nested(x: Tensor):
    y=x.clone(); k=(x>0).to(torch.uint8)
    while bool(y.sum()<500):
        z=y.clone(); m=k.abs(); m.add_(1)
        if bool(y[0,0]>0): z.add_(2.)
        else: y.add_(1.)
        y=y+z.abs()+m
    return y,k


def const_alias_sum(x: Tensor):
    n=torch.tensor(3); m=n.view(1); m+=1
    return n+1,m
"""
"""Aliases across branches, loops, lists and numbers."""
HEAD = """
from typing import Optional
import torch
import torch.nn.functional as F
from torch import Tensor
"""


def programs() -> Iterator[tuple[str, Any]]:
    """Names and functions of one tensor."""
    for (view, expression), (write, statement) in itertools.product(VIEWS.items(), WRITES.items()):
        text = f"{HEAD}\ndef f(x: Tensor):\n    x = x.clone()\n    y = {expression}\n    {statement}\n    return x, y\n"
        yield f"{view}.{write}", defined(f"{view}.{write}", text)["f"]
    flows = defined("flows", HEAD + FLOWS)
    for name, function in flows.items():
        if getattr(function, "__module__", "") == "alias_programs":
            yield name, function


def defined(name: str, text: str) -> dict[str, Any]:
    """What a text defines. TorchScript reads the text of a function again, by its place."""
    place = f"<{name}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    made: dict[str, Any] = {"__name__": "alias_programs"}
    exec(compile(text, place, "exec"), made)
    return made


def arrays_of(value: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors of a result."""
    return [x.resolve_conj().resolve_neg().numpy() for x in flat(value)]


def recorded() -> Iterator[Case]:
    """The programs that torch runs, with what it gives."""
    import torch
    x = np.arange(24, dtype=np.float32).reshape(4, 6) - 7
    for name, function in programs():
        flow = "." not in name
        for mode in ("script",) if flow else ("trace", "script"):
            for given in (x, -x) if flow else (x,):
                try:
                    if mode == "trace":
                        graph, outputs = torch.jit.trace(function, (torch.tensor(given),), check_trace=False), function(torch.tensor(given))
                    else:
                        graph = torch.jit.script(function)
                        outputs = graph(torch.tensor(given))
                except Exception:
                    continue  # torch refuses the program
                if "<Tensor>" in str(graph.inlined_graph):
                    continue  # a trace of x.data holds the values of x
                text = "\n".join(line.partition(" # ")[0] for line in str(graph.inlined_graph).split("\n"))
                yield Case(f"{name}.{mode}", text, (given,), tuple(arrays_of(outputs)))


def turned(tensors: list[Any], chooser: random.Random) -> Iterator[list[Any]]:
    """The same shapes in other orders of dimensions, with gaps, and in channels-last formats."""
    import torch

    def shuffled(x: Any) -> Any:
        order = chooser.sample(range(x.dim()), x.dim())
        return x.permute(order).contiguous().permute([order.index(d) for d in range(x.dim())])

    def last(x: Any) -> Any:
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        return x.contiguous(memory_format=formats[x.dim()]) if x.dim() in formats else x
    yield [shuffled(tensors[0]), *tensors[1:]]
    yield [shuffled(x) for x in tensors]
    yield [torch.stack([x, x], -1)[..., 0] if x.dim() else x for x in tensors]
    yield [last(x) for x in tensors]
    yield [last(tensors[0]), *tensors[1:]]


def layout_texts(seed: int, samples: int) -> Iterator[str]:
    """Traced calls of torch's operators: a text whose types state the strides of operands and results."""
    import torch
    chooser = random.Random(seed)
    for operator in operator_samples():
        if torch.float32 not in operator.dtypes or any(word in operator.name for word in ("sparse", "jiterator", "_refs", "masked.", "nested")):
            continue
        torch.manual_seed(seed)
        try:
            found = list(itertools.islice(operator.sample_inputs("cpu", torch.float32), 60))
        except Exception:
            continue
        for sample in chooser.sample(found, min(samples, len(found))):
            tensors: list[Any] = []
            places = tensors_in(((sample.input, *sample.args), sample.kwargs), tensors)

            def call(*given: Any, places: Any = places, operator: Any = operator) -> Any:
                args, kwargs = filled(places, given)
                return tuple(flat(operator.op(*args, **kwargs)))
            for operands in turned(tensors, chooser) if tensors else ():
                try:
                    with torch.no_grad():
                        yield str(torch.jit.trace(call, tuple(operands), check_trace=False, strict=False).inlined_graph)
                except Exception:
                    continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--sample", type=int, default=0, help="keep so many writes of each view, chosen by its name, and all flows")
    parser.add_argument("--layouts", default="")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = list(recorded())
    if options.sample:
        kept = [case for case in cases if case.name.count(".") < 2]
        for view in VIEWS:
            own = [case for case in cases if case.name.count(".") == 2 and case.name.partition(".")[0] == view]
            plain = [case for case in own if case.name == f"{view}.mul.script"]
            kept += [*plain, *random.Random(view).sample(own, min(options.sample - len(plain), len(own)))]
        cases = kept
    write_cases(options.file, cases)
    print(f"{len(cases)} programs of {len(VIEWS)} views and {len(WRITES)} writes", file=sys.stderr)
    if options.layouts:
        Path(options.layouts).write_text(json.dumps(sorted(set(layout_texts(options.seed, 6)))))


if __name__ == "__main__":
    main()
