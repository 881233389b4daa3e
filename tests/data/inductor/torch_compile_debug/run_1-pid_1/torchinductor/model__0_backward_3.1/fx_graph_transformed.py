class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[16]", primals_3: "f32[8, 16]", primals_4: "f32[32, 16]", primals_6: "f32[16, 32]", getitem_1: "f32[8, 1]", rsqrt: "f32[8, 1]", add_1: "f32[8, 16]", addmm: "f32[8, 32]", mul_4: "f32[8, 32]", tangents_1: "f32[8, 16]"):
        # File: /src/lab.py:11 in forward, code: return x + self.down(F.gelu(self.up(self.norm(x))))
        permute_1: "f32[32, 16]" = torch.ops.aten.permute.default(primals_6, [1, 0]);  primals_6 = None
        permute_2: "f32[16, 32]" = torch.ops.aten.permute.default(permute_1, [1, 0]);  permute_1 = None
        mm: "f32[8, 32]" = torch.ops.aten.mm.default(tangents_1, permute_2);  permute_2 = None
        permute_3: "f32[16, 8]" = torch.ops.aten.permute.default(tangents_1, [1, 0])
        mm_1: "f32[16, 32]" = torch.ops.aten.mm.default(permute_3, mul_4);  permute_3 = mul_4 = None
        sum_1: "f32[1, 16]" = torch.ops.aten.sum.dim_IntList(tangents_1, [0], True)
        view: "f32[16]" = torch.ops.aten.reshape.default(sum_1, [16]);  sum_1 = None
        mul_3: "f32[8, 32]" = torch.ops.aten.mul.Tensor(addmm, 0.7071067811865476)
        erf: "f32[8, 32]" = torch.ops.aten.erf.default(mul_3);  mul_3 = None
        add_2: "f32[8, 32]" = torch.ops.aten.add.Tensor(erf, 1);  erf = None
        mul_6: "f32[8, 32]" = torch.ops.aten.mul.Tensor(add_2, 0.5);  add_2 = None
        mul_7: "f32[8, 32]" = torch.ops.aten.mul.Tensor(addmm, addmm)
        mul_8: "f32[8, 32]" = torch.ops.aten.mul.Tensor(mul_7, -0.5);  mul_7 = None
        exp: "f32[8, 32]" = torch.ops.aten.exp.default(mul_8);  mul_8 = None
        mul_9: "f32[8, 32]" = torch.ops.aten.mul.Tensor(exp, 0.3989422804014327);  exp = None
        mul_10: "f32[8, 32]" = torch.ops.aten.mul.Tensor(addmm, mul_9);  addmm = mul_9 = None
        add_5: "f32[8, 32]" = torch.ops.aten.add.Tensor(mul_6, mul_10);  mul_6 = mul_10 = None
        mul_11: "f32[8, 32]" = torch.ops.aten.mul.Tensor(mm, add_5);  mm = add_5 = None
        permute: "f32[16, 32]" = torch.ops.aten.permute.default(primals_4, [1, 0]);  primals_4 = None
        permute_6: "f32[32, 16]" = torch.ops.aten.permute.default(permute, [1, 0]);  permute = None
        mm_2: "f32[8, 16]" = torch.ops.aten.mm.default(mul_11, permute_6);  permute_6 = None
        permute_7: "f32[32, 8]" = torch.ops.aten.permute.default(mul_11, [1, 0])
        mm_3: "f32[32, 16]" = torch.ops.aten.mm.default(permute_7, add_1);  permute_7 = add_1 = None
        sum_2: "f32[1, 32]" = torch.ops.aten.sum.dim_IntList(mul_11, [0], True);  mul_11 = None
        view_1: "f32[32]" = torch.ops.aten.reshape.default(sum_2, [32]);  sum_2 = None
        mul_13: "f32[8, 16]" = torch.ops.aten.mul.Tensor(mm_2, primals_1);  primals_1 = None
        mul_14: "f32[8, 16]" = torch.ops.aten.mul.Tensor(mul_13, 16)
        sum_3: "f32[8, 1]" = torch.ops.aten.sum.dim_IntList(mul_13, [1], True)
        sub: "f32[8, 16]" = torch.ops.aten.sub.Tensor(primals_3, getitem_1);  primals_3 = getitem_1 = None
        mul: "f32[8, 16]" = torch.ops.aten.mul.Tensor(sub, rsqrt);  sub = None
        mul_15: "f32[8, 16]" = torch.ops.aten.mul.Tensor(mul_13, mul);  mul_13 = None
        sum_4: "f32[8, 1]" = torch.ops.aten.sum.dim_IntList(mul_15, [1], True);  mul_15 = None
        mul_16: "f32[8, 16]" = torch.ops.aten.mul.Tensor(mul, sum_4);  sum_4 = None
        sub_2: "f32[8, 16]" = torch.ops.aten.sub.Tensor(mul_14, sum_3);  mul_14 = sum_3 = None
        sub_3: "f32[8, 16]" = torch.ops.aten.sub.Tensor(sub_2, mul_16);  sub_2 = mul_16 = None
        div: "f32[8, 1]" = torch.ops.aten.div.Tensor(rsqrt, 16);  rsqrt = None
        mul_17: "f32[8, 16]" = torch.ops.aten.mul.Tensor(div, sub_3);  div = sub_3 = None
        mul_18: "f32[8, 16]" = torch.ops.aten.mul.Tensor(mm_2, mul);  mul = None
        sum_5: "f32[16]" = torch.ops.aten.sum.dim_IntList(mul_18, [0]);  mul_18 = None
        sum_6: "f32[16]" = torch.ops.aten.sum.dim_IntList(mm_2, [0]);  mm_2 = None
        add_6: "f32[8, 16]" = torch.ops.aten.add.Tensor(tangents_1, mul_17);  tangents_1 = mul_17 = None
        return (sum_5, sum_6, add_6, mm_3, view_1, mm_1, view)
