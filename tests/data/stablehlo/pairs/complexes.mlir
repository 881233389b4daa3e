module @jit_complexes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<8xf32> {jax.result_info = "result[1]"}, tensor<5xcomplex<f32>> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<8xf32>
    %2 = stablehlo.complex %arg0, %1 : tensor<8xcomplex<f32>>
    %3 = stablehlo.exponential %2 : tensor<8xcomplex<f32>>
    %4 = stablehlo.log %2 : tensor<8xcomplex<f32>>
    %5 = stablehlo.real %4 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
    %6 = call @fft(%arg0) : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
    return %3, %5, %6 : tensor<8xcomplex<f32>>, tensor<8xf32>, tensor<5xcomplex<f32>>
  }
  func.func private @fft(%arg0: tensor<8xf32>) -> tensor<5xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
    return %0 : tensor<5xcomplex<f32>>
  }
}
