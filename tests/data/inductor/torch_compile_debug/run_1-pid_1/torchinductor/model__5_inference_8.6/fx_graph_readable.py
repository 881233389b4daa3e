class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[4, 6]"):
        # File: /src/lab.py:28 in sorter, code: v, i = torch.topk(a, 3)
        topk = torch.ops.aten.topk.default(arg0_1, 3)
        getitem: "f32[4, 3]" = topk[0];  topk = None

        # File: /src/lab.py:29 in sorter, code: return torch.cat([v.exp(), a.cumsum(1)], 1)
        exp: "f32[4, 3]" = torch.ops.aten.exp.default(getitem);  getitem = None
        cumsum: "f32[4, 6]" = torch.ops.aten.cumsum.default(arg0_1, 1);  arg0_1 = None
        cat: "f32[4, 9]" = torch.ops.aten.cat.default([exp, cumsum], 1);  exp = cumsum = None
        return (cat,)
