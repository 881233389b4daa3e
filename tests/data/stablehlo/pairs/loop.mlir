module @jit_loop attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.iota dim = 0 : tensor<4xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.multiply %1, %arg0 : tensor<4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3:5 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %2, %iterArg_1 = %0, %iterArg_2 = %c, %iterArg_3 = %arg0) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>
    cond {
      %4 = stablehlo.convert %iterArg_2 : tensor<i32>
      %5 = stablehlo.compare LT, %4, %iterArg, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %iterArg_2, %c_4 : tensor<i32>
      %5 = stablehlo.sine %iterArg_3 : tensor<4xf32>
      %6 = stablehlo.multiply %5, %iterArg_0 : tensor<4xf32>
      %7 = stablehlo.add %6, %iterArg_1 : tensor<4xf32>
      stablehlo.return %iterArg, %iterArg_0, %iterArg_1, %4, %7 : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>
    }
    return %3#4 : tensor<4xf32>
  }
}
