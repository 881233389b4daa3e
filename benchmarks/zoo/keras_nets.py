"""The zoo's nets of keras: those of keras.applications with random weights, and some built of its layers."""
from __future__ import annotations

from typing import Any

from benchmarks.zoo.net import Input, Net


def _application(name: str, size: int = 64, **options: Any) -> Net:
    def build() -> Any:
        import keras  # type: ignore[import-not-found, unused-ignore]

        return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=20, **options)

    return Net(f"keras_{name}", "keras", build, {"x": Input((1, size, size, 3))}, f"{size} px, 20 classes")


def _recurrent(kind: str) -> Any:
    import keras

    words = keras.Input((12,), dtype="int32")
    y = keras.layers.Embedding(100, 32, mask_zero=True)(words)
    y = keras.layers.Bidirectional(getattr(keras.layers, kind)(24, return_sequences=True))(y)
    return keras.Model(words, keras.layers.Dense(10, activation="softmax")(getattr(keras.layers, kind)(16)(y)))


def _convolutional_lstm() -> Any:
    import keras

    frames = keras.Input((4, 16, 16, 2))
    y = keras.layers.ConvLSTM2D(8, 3, padding="same", return_sequences=True)(frames)
    y = keras.layers.BatchNormalization()(y)
    return keras.Model(frames, keras.layers.Conv3D(1, 3, padding="same", activation="sigmoid")(y))


def _transformer() -> Any:
    import keras

    words = keras.Input((16,), dtype="int32")
    y = keras.layers.Embedding(100, 32)(words)
    for _ in range(2):
        y = keras.layers.LayerNormalization()(y + keras.layers.MultiHeadAttention(4, 8)(y, y, use_causal_mask=True))
        up = keras.layers.Dense(64, activation="gelu")(y)
        y = keras.layers.LayerNormalization()(y + keras.layers.Dense(32)(up))
    return keras.Model(words, keras.layers.Dense(100)(y))


def _unet() -> Any:
    import keras

    picture = keras.Input((32, 32, 3))
    down, kept = picture, []
    for width in (16, 32):
        down = keras.layers.Conv2D(width, 3, padding="same", activation="relu")(down)
        kept.append(down)
        down = keras.layers.MaxPooling2D()(keras.layers.GroupNormalization(4)(down))
    up = keras.layers.Conv2D(64, 3, padding="same", activation="silu")(down)
    for width, other in zip((32, 16), reversed(kept), strict=True):
        up = keras.layers.Conv2DTranspose(width, 2, strides=2)(up)
        up = keras.layers.SeparableConv2D(width, 3, padding="same", activation="elu")(keras.layers.Concatenate()([up, other]))
    return keras.Model(picture, keras.layers.Conv2D(1, 1, activation="sigmoid")(keras.layers.UpSampling2D(2, interpolation="bilinear")(up)))


def _sound() -> Any:
    import keras

    wave = keras.Input((256, 1))
    y = keras.layers.Conv1D(16, 9, strides=2, padding="causal", activation="relu")(wave)
    y = keras.layers.DepthwiseConv1D(5, dilation_rate=1, padding="same")(y)
    y = keras.layers.AveragePooling1D(4)(keras.layers.LayerNormalization()(y))
    y = keras.layers.Bidirectional(keras.layers.SimpleRNN(12, return_sequences=True))(y)
    return keras.Model(wave, keras.layers.Dense(5, activation="softmax")(keras.layers.GlobalMaxPooling1D()(y)))


_WORDS = {"x": Input((2, 12), 100)}
NETS = [
    _application("VGG16", 32),
    _application("ResNet50"),
    _application("ResNet101V2"),
    _application("InceptionV3", 96),
    _application("InceptionResNetV2", 96),
    _application("Xception", 96),
    _application("DenseNet121"),
    _application("MobileNet"),
    _application("MobileNetV2"),
    _application("MobileNetV3Small"),
    _application("EfficientNetB0"),
    _application("EfficientNetV2B0"),
    _application("NASNetMobile"),
    _application("ConvNeXtTiny"),
    Net("keras_lstm", "keras", lambda: _recurrent("LSTM"), _WORDS),
    Net("keras_gru", "keras", lambda: _recurrent("GRU"), _WORDS),
    Net("keras_conv_lstm", "keras", _convolutional_lstm, {"x": Input((1, 4, 16, 16, 2))}),
    Net("keras_transformer", "keras", _transformer, {"x": Input((2, 16), 100)}),
    Net("keras_unet", "keras", _unet, {"x": Input((1, 32, 32, 3))}),
    Net("keras_sound", "keras", _sound, {"x": Input((2, 256, 1))}),
]
