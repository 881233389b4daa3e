"""The zoo's nets of timm."""
from __future__ import annotations

from typing import Any

from benchmarks.zoo.net import Net, image


def _net(name: str, size: int = 64, reduced: str = "", **options: Any) -> Net:
    def build() -> Any:
        import timm  # type: ignore[import-not-found, unused-ignore]

        return timm.create_model(name, pretrained=False, **options)

    return Net(name, "timm", build, image(size), f"{size} px" + (f"; {reduced}" if reduced else ""))


NETS = [
    _net("coat_lite_tiny", img_size=64),
    _net("twins_pcpvt_small", img_size=64),
    _net("twins_svt_small", 224, "depths 1, 1, 2, 1", depths=(1, 1, 2, 1)),
    _net("coatnet_nano_rw_224", 224, "depths 1, 1, 2, 1", depths=(1, 1, 2, 1)),
    _net("maxxvitv2_nano_rw_256", 128, "depths 1, 1, 1, 1", img_size=128, depths=(1, 1, 1, 1)),
    _net("eca_halonext26ts", 256),
    _net("botnet26t_256", 128, img_size=128),
    _net("lambda_resnet26t", 128),
    _net("crossvit_tiny_240", 240, "one layer a branch", depth=([1, 2, 0], [1, 2, 0], [1, 2, 0])),
    _net("volo_d1_224", img_size=64),
    _net("xcit_nano_12_p16_224", 64, "depth 4", img_size=64, depth=4),
    _net("cait_xxs24_224", 64, "depth 4", img_size=64, depth=4),
    _net("beit_base_patch16_224", 64, "3 layers of width 96", img_size=64, depth=3, embed_dim=96, num_heads=4),
    _net("levit_128s", 224),
    _net("mobilevit_xxs"),
    _net("mobileone_s0"),
    _net("repvgg_a0"),
    _net("ghostnet_100"),
    _net("hrnet_w18_small"),
    _net("res2net50_26w_4s"),
    _net("dla34"),
    _net("ese_vovnet19b_dw"),
    _net("resnest14d"),
    _net("edgenext_xx_small"),
    _net("poolformer_s12"),
    _net("mixer_s32_224", img_size=64),
    _net("gmlp_ti16_224", img_size=64),
    _net("convmixer_768_32", 56),
    _net("nf_resnet26"),
    _net("pvt_v2_b0"),
    _net("nest_tiny", 112, img_size=112),
    _net("visformer_tiny", img_size=64),
    _net("tnt_s_patch16_224", 64, "depth 3", img_size=64, depth=3),
    _net("efficientformer_l1", 224),
    _net("efficientvit_b0"),
    _net("fastvit_t8"),
    _net("focalnet_tiny_srf"),
    _net("davit_tiny", 64, "depths 1, 1, 1, 1", depths=(1, 1, 1, 1)),
    _net("gcvit_xxtiny", img_size=64),
    _net("hiera_tiny_224", img_size=64),
    _net("mambaout_femto"),
    _net("tiny_vit_5m_224", 224),
    _net("sequencer2d_s", 64, "layers 1, 1, 1, 1", img_size=64, layers=(1, 1, 1, 1)),
    _net("eva02_tiny_patch14_224", 56, "depth 3", img_size=56, depth=3),
    _net("swinv2_cr_tiny_224", 64, "depths 1, 1, 2, 1", img_size=64, depths=(1, 1, 2, 1)),
    _net("convit_tiny", 64, "depth 4", img_size=64, depth=4, local_up_to_layer=3),
]
