"""Words of each grammar, put where they do not belong, and the texts that no output may let through as they are."""
from __future__ import annotations

COMMON = ["\n", "\0", "é", "  ", "    ", "9" * 400, "\x1b[31m", "\x1b]0;t\x07", "\x9b2J", "\u202e", "\ufeff", "</script><script>alert(1)</script>",
          "<img src=x onerror=alert(1)>", "]]>", "-->", "${x}", "::error::", "|`<!--", "(" * 300, "[" * 300, "{" * 300]

SPICE = {
    "hlo": r"""{ } ( ) [ ] , = % # " ' /* */ // ... -> <= ? \ nan -inf nan(0x1) 1e400 -0 18446744073709551616 f32[ f32[2,3]{1,0} token[] b(
 ROOT ENTRY HloModule FileNames metadata={ backend_config={ sharding={ to_apply= to_apply={ calls=%x constant({...}) parameter(0)
 dimensions={0,1} async-start -start( -done( %p#0#1 window={size= 0_1x2_3 b01f_01io->b01f mesh[ [2,4]<=[8] T(1,0) E(4)S(5)
 f32[<=4] while( body= custom-call( custom_call_target="TopK" replica_groups={{0,1}} channel_id=1 slice={[0:1]} s4[] c64[]""".split()
    + [*COMMON, "9" * 5000, "I0000 00:00:17.123 a.cc:1] "],
    "torchscript": r"""{ } ( ) [ ] , = % # " : -> graph( return block0(): ... prim::If prim::Loop prim::Constant[value=1]() aten::add_
 aten::view aten::slice aten::index prim::ListConstruct() prim::TupleUnpack with prim::TensorExprGroup_0 Float(2,3) Float(*,3) Long()
 Tensor[] Tensor? Dict(str,Tensor) value={1} value=[1,2] value="\0)+" value=<Tensor> __torch__.X name="w" , scope: __module.a/__module.a.b
 # f.py:1:2 -1 9223372036854775807 nan 1e400 annotate(List[int],[]) %x %0 %self prim::RaiseException prim::CallMethod[name="f"]
 ^Py[](1)""".split() + COMMON,
    "export": r"""{ } ( ) [ ] , = % # " ' : ; -> \\ ExportedProgram: class g(torch.nn.Module): graph(): def_forward(self, return inf nan None -1 1e400
 1j torch.ops.aten.add.Tensor( torch.ops.higher_order.cond( torch.ops.lab.f.default( torch.float32 device(type='cpu') self.g getattr(self,"0") x[0]
 x.view( f32[ f32[[ Sym(s0) f32[2*s77] s77 [num_users=1] [num_users=] call_function[target= get_attr[target=g] (args_=_(%x,) kwargs_=_{}) %x
 USER_INPUT target='w' VR[2,_int_oo] slice(None) fx_pytree.tree_flatten_spec( *x **k lambda:0 := await""".split() + COMMON,
    "relay": r"""{ } ( ) [ ] , = % @ # " ' : ; -> => < > . /* */ // ... #[version def fn( let if( else match match? type extern ref(
 True False nan inf 1f32 2i64 -1 1e400 9223372036854775808 Tensor[(2, 3), float32] Tensor[(?, 3), float32] Tensor[(), bool] int64 ()
 (Tensor[(1), int8],) %x %0 %1.0 @main meta[relay.Constant][0] add( nn.conv2d( nn.dense( axis=1 units=None strides=[1, 1] reshape(
 newshape=[-1] nn.dropout( split( indices_or_sections=3 zeros( shape=[2] dtype="float32" kernel_layout="OIHW16o" span=0:0
 primitive""".split(" ") + COMMON,
    "config": r"""[ ] [[ ]] { } = . , # " ' ''' policy = select = [lint.check] [[suppress]] 2024-01-01 nan inf 1e400 -1 true "\u0000" "*" "**" """.split()
    + COMMON,
    "query": r"""( ) ! & | = != ~ !~ < <= > >= and or not op name near( deps( uses( path( "" " ' /x/ /( * ** 1e400 1MB 1Ki 9999999999999 shape=*,* [8,*] 8x64 fused
 entry root scalar known""".split() + COMMON,
    "arguments": ["", "-", "--", "-h", "--version", ".", "a.txt", "*", "nan", "-1", "1e400", "9" * 30, "0", *COMMON],
}
"""By format; ``config``, ``query`` and ``arguments`` are the other texts that a user writes."""
