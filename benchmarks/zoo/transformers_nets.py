"""The zoo's nets of transformers: the library's own code at a small width and depth."""
from __future__ import annotations

from typing import Any

from benchmarks.zoo.net import Input, Net, tokens

_SMALL: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
_TEXT = _SMALL | {"vocab_size": 100}
_DECODER = _TEXT | {"num_key_value_heads": 2, "max_position_embeddings": 64, "use_cache": False, "pad_token_id": 0}
_VISION = _SMALL | {"image_size": 32, "patch_size": 8}
_SOUND = _SMALL | {"conv_dim": (32, 32, 32), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2), "num_conv_pos_embeddings": 16,
                   "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 3}
_SEQ2SEQ: dict[str, Any] = {"vocab_size": 100, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                            "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "use_cache": False}
_TOWERS: dict[str, Any] = {"text_config": _TEXT | {"max_position_embeddings": 16, "projection_dim": 32, "eos_token_id": 99},
                           "vision_config": _VISION | {"projection_dim": 32}, "projection_dim": 32}
_MASK = {"attention_mask": Input((1, 12), 0)}
_MASKED = tokens() | _MASK
_BOTH = _MASKED | {"decoder_input_ids": Input((1, 7), 100)}


def _net(name: str, model: str, inputs: dict[str, Input], base: dict[str, Any], config: str = "", part: str = "", **options: Any) -> Net:
    """``model`` of a configuration (by default named like it) of ``base`` and ``options``; ``part`` picks a module of it."""
    def build() -> Any:
        import transformers  # type: ignore[import-not-found, unused-ignore]

        settings = getattr(transformers, config or model.removesuffix("Model") + "Config")(**base | options)
        return getattr(transformers, model)(settings).get_submodule(part)

    return Net(name, "transformers", build, inputs, "2 layers of width 64")


def _pictures(size: int = 32, batch: int = 1) -> dict[str, Input]:
    return {"pixel_values": Input((batch, 3, size, size))}


NETS = [
    _net("bert", "BertModel", _MASKED, _TEXT),
    _net("roberta", "RobertaModel", _MASKED, _TEXT),
    _net("distilbert", "DistilBertModel", _MASKED, {}, vocab_size=100, dim=64, n_layers=2, n_heads=4, hidden_dim=128),
    _net("electra", "ElectraModel", _MASKED, _TEXT, embedding_size=32),
    _net("albert", "AlbertModel", _MASKED, _TEXT, embedding_size=32),
    _net("deberta_v2", "DebertaV2Model", _MASKED, _TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8,
         norm_rel_ebd="layer_norm", share_att_key=True),
    _net("mpnet", "MPNetModel", _MASKED, _TEXT),
    _net("longformer", "LongformerModel", {"input_ids": Input((1, 16), 100)}, _TEXT, attention_window=[8, 8]),
    _net("fnet", "FNetModel", tokens(), _TEXT),
    _net("big_bird", "BigBirdModel", tokens(), _TEXT, attention_type="original_full"),
    _net("xlnet", "XLNetModel", tokens(), {}, vocab_size=100, d_model=64, n_layer=2, n_head=4, d_inner=128),
    _net("convbert", "ConvBertModel", _MASKED, _TEXT, embedding_size=64),
    _net("mobilebert", "MobileBertModel", _MASKED, _TEXT, embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32),
    _net("modernbert", "ModernBertModel", _MASKED, _TEXT, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2),
    _net("gpt2", "GPT2Model", _MASKED, {}, vocab_size=100, n_embd=64, n_layer=2, n_head=4, use_cache=False),
    _net("opt", "OPTModel", _MASKED, {}, vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
         word_embed_proj_dim=64, use_cache=False),
    _net("gpt_neo", "GPTNeoModel", _MASKED, {}, vocab_size=100, hidden_size=64, num_layers=2, num_heads=4, use_cache=False,
         attention_types=[[["global", "local"], 1]], window_size=4),
    _net("bloom", "BloomModel", _MASKED, {}, vocab_size=100, hidden_size=64, n_layer=2, n_head=4, use_cache=False),
    _net("llama", "LlamaModel", _MASKED, _DECODER),
    _net("mistral", "MistralModel", _MASKED, _DECODER, sliding_window=4),
    _net("qwen3", "Qwen3Model", _MASKED, _DECODER, head_dim=16),
    _net("qwen3_moe", "Qwen3MoeModel", _MASKED, _DECODER, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64),
    _net("gemma2", "Gemma2Model", _MASKED, _DECODER, head_dim=16, sliding_window=4),
    _net("phi3", "Phi3Model", _MASKED, _DECODER, bos_token_id=1, eos_token_id=2),
    _net("mamba", "MambaModel", tokens(), {}, vocab_size=100, hidden_size=64, num_hidden_layers=2, state_size=8, use_cache=False),
    _net("rwkv", "RwkvModel", tokens(), {}, vocab_size=100, hidden_size=64, num_hidden_layers=2, attention_hidden_size=64,
         intermediate_size=128, use_cache=False),
    _net("t5", "T5Model", _BOTH, {}, vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, use_cache=False),
    _net("bart", "BartModel", _BOTH, _SEQ2SEQ),
    _net("clip", "CLIPModel", _MASKED | _pictures(batch=2), _TOWERS),
    _net("siglip", "SiglipModel", tokens(16) | _pictures(batch=2), _TOWERS),
    _net("vilt", "ViltModel", _MASKED | _pictures() | {"token_type_ids": Input((1, 12), 2)},
         _TEXT, image_size=32, patch_size=8),
    _net("detr", "DetrModel", _pictures(64), _SEQ2SEQ, backbone_config=None, use_timm_backbone=True, backbone="resnet18",
         use_pretrained_backbone=False, num_queries=10),
    _net("yolos", "YolosModel", _pictures(64), _SMALL, image_size=[64, 64], patch_size=16, num_detection_tokens=5),
    _net("segformer", "SegformerForSemanticSegmentation", _pictures(64), {}, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
         decoder_hidden_size=32, config="SegformerConfig"),
    _net("dpt", "DPTForDepthEstimation", _pictures(64), _SMALL, num_hidden_layers=4, image_size=64, patch_size=16,
         backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 32, 48, 64], fusion_hidden_size=32, config="DPTConfig"),
    _net("dinov2", "Dinov2Model", _pictures(56), _SMALL, image_size=28, patch_size=14),
    _net("sam_vision", "SamVisionModel", _pictures(64), _SMALL, output_channels=32, image_size=64, patch_size=16, window_size=2,
         global_attn_indexes=[1], mlp_dim=128, num_pos_feats=16, config="SamVisionConfig"),
    _net("swin2sr", "Swin2SRForImageSuperResolution", _pictures(16), {}, image_size=16, patch_size=1, embed_dim=24, depths=[2, 2],
         num_heads=[2, 2], window_size=4, upscale=2, config="Swin2SRConfig"),
    _net("mobilevit_v2", "MobileViTV2Model", _pictures(64), {}, width_multiplier=0.5, image_size=64),
    _net("videomae", "VideoMAEModel", {"pixel_values": Input((1, 4, 3, 32, 32))}, _VISION, num_frames=4),
    _net("wav2vec2", "Wav2Vec2Model", {"input_values": Input((1, 1200))}, _SOUND),
    _net("hubert", "HubertModel", {"input_values": Input((1, 1200))}, _SOUND),
    _net("whisper_encoder", "WhisperModel", {"input_features": Input((1, 20, 64))}, _SEQ2SEQ, num_mel_bins=20, max_source_positions=32,
         max_target_positions=16, pad_token_id=0, part="encoder"),
    _net("audio_spectrogram", "ASTModel", {"input_values": Input((1, 48, 32))}, _SMALL, max_length=48, num_mel_bins=32, patch_size=16,
         frequency_stride=10, time_stride=10),
    _net("encodec", "EncodecModel", {"input_values": Input((1, 1, 640))}, {}, num_filters=8, hidden_size=32, upsampling_ratios=[8, 5,
         4], target_bandwidths=[6.0], codebook_size=64),
    _net("perceiver", "PerceiverModel", {"inputs": Input((1, 24, 32))}, {}, num_latents=8, d_latents=48, d_model=32, num_blocks=1,
         num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4),
    _net("patchtst", "PatchTSTModel", {"past_values": Input((1, 32, 3))}, {}, num_input_channels=3, context_length=32, patch_length=8,
         patch_stride=8, d_model=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4),
    _net("esm", "EsmModel", _MASKED, _TEXT, position_embedding_type="rotary", pad_token_id=1, mask_token_id=2),
]
