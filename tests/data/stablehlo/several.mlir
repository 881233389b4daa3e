module @jit_several attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<6x5xf32>, %arg1: tensor<i32>, %arg2: tensor<4xui32>) -> (tensor<6xf32> {jax.result_info = "result[0]"}, tensor<5xf32> {jax.result_info = "result[1]"}, tensor<2x5xf32> {jax.result_info = "result[2]"}, tensor<6x5xf32> {jax.result_info = "result[3]"}, tensor<6x5xf32> {jax.result_info = "result[4]"}, tensor<1x6x5x2xf32> {jax.result_info = "result[5]"}, tensor<6xi32> {jax.result_info = "result[6]"}, tensor<6x3xcomplex<f32>> {jax.result_info = "result[7]"}, tensor<6x5xf32> {jax.result_info = "result[8]"}, tensor<6x2xf32> {jax.result_info = "result[9][0]"}, tensor<6x2xi32> {jax.result_info = "result[9][1]"}, tensor<6x11xf32> {jax.result_info = "result[10]"}, tensor<6x5xf32> {jax.result_info = "result[11]"}, tensor<6x5xui32> {jax.result_info = "result[12]"}, tensor<6x5xf32> {jax.result_info = "result[13]"}, tensor<6x5xf32> {jax.result_info = "result[14]"}, tensor<ui32> {jax.result_info = "result[15]"}, tensor<6x5xf32> {jax.result_info = "result[16]"}, tensor<6x5xf32> {jax.result_info = "result[17]"}) {
    %0 = sdy.sharding_constraint %arg2 <@empty_mesh, [{}]> : tensor<4xui32>
    %1 = stablehlo.slice %arg0 [0:6, 0:1] : (tensor<6x5xf32>) -> tensor<6x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<6x1xf32>) -> tensor<6xf32>
    %3 = stablehlo.iota dim = 0 : tensor<6xi32>
    %4:2 = "stablehlo.sort"(%2, %3) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<i32>, %arg6: tensor<i32>):
      %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %54 = stablehlo.compare EQ, %arg3, %cst_15, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %55 = stablehlo.select %54, %cst_16, %arg3 : tensor<i1>, tensor<f32>
      %56 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_17 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %57 = stablehlo.select %56, %cst_17, %55 : tensor<i1>, tensor<f32>
      %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %58 = stablehlo.compare EQ, %arg4, %cst_18, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %59 = stablehlo.select %58, %cst_19, %arg4 : tensor<i1>, tensor<f32>
      %60 = stablehlo.compare NE, %arg4, %arg4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_20 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %61 = stablehlo.select %60, %cst_20, %59 : tensor<i1>, tensor<f32>
      %62 = stablehlo.compare LT, %57, %61, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %62 : tensor<i1>
    }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %5:3 = stablehlo.while(%iterArg = %arg0, %iterArg_15 = %c, %iterArg_16 = %arg0) : tensor<6x5xf32>, tensor<i32>, tensor<6x5xf32>
    cond {
      %c_17 = stablehlo.constant dense<3> : tensor<i32>
      %54 = stablehlo.compare LT, %iterArg_15, %c_17, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %54 : tensor<i1>
    } do {
      %c_17 = stablehlo.constant dense<1> : tensor<i32>
      %54 = stablehlo.add %iterArg_15, %c_17 : tensor<i32>
      %cst_18 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %55 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
      %56 = stablehlo.multiply %iterArg_16, %55 : tensor<6x5xf32>
      %57 = stablehlo.slice %iterArg [0:1, 0:1] : (tensor<6x5xf32>) -> tensor<1x1xf32>
      %58 = stablehlo.reshape %57 : (tensor<1x1xf32>) -> tensor<f32>
      %59 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
      %60 = stablehlo.add %56, %59 : tensor<6x5xf32>
      stablehlo.return %iterArg, %54, %60 : tensor<6x5xf32>, tensor<i32>, tensor<6x5xf32>
    }
    %6 = stablehlo.slice %5#2 [1:2, 0:5] : (tensor<6x5xf32>) -> tensor<1x5xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x5xf32>) -> tensor<5xf32>
    %8 = stablehlo.convert %arg1 : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %9 = stablehlo.clamp %c_0, %8, %c_1 : tensor<i32>
    %10 = "stablehlo.case"(%9) ({
      %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %54 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<5xf32>
      %55 = stablehlo.add %7, %54 : tensor<5xf32>
      stablehlo.return %55 : tensor<5xf32>
    }, {
      %54 = stablehlo.sine %7 : tensor<5xf32>
      %55 = stablehlo.slice %5#2 [0:1, 0:5] : (tensor<6x5xf32>) -> tensor<1x5xf32>
      %56 = stablehlo.reshape %55 : (tensor<1x5xf32>) -> tensor<5xf32>
      %57 = stablehlo.multiply %54, %56 : tensor<5xf32>
      stablehlo.return %57 : tensor<5xf32>
    }, {
      %54 = stablehlo.negate %7 : tensor<5xf32>
      stablehlo.return %54 : tensor<5xf32>
    }) : (tensor<i32>) -> tensor<5xf32>
    %11 = stablehlo.slice %4#1 [0:2] : (tensor<6xi32>) -> tensor<2xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %13 = stablehlo.compare LT, %11, %12, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_3 = stablehlo.constant dense<6> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %15 = stablehlo.add %11, %14 : tensor<2xi32>
    %16 = stablehlo.select %13, %15, %11 : tensor<2xi1>, tensor<2xi32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %18 = "stablehlo.gather"(%arg0, %17) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5>}> : (tensor<6x5xf32>, tensor<2x1xi32>) -> tensor<2x5xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %19 = stablehlo.compare LT, %arg1, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_5 = stablehlo.constant dense<6> : tensor<i32>
    %20 = stablehlo.add %arg1, %c_5 : tensor<i32>
    %21 = stablehlo.select %19, %20, %arg1 : tensor<i1>, tensor<i32>
    %22 = stablehlo.convert %21 : tensor<i32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %25 = "stablehlo.scatter"(%arg0, %23, %24) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %54 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %54 : tensor<f32>
    }) : (tensor<6x5xf32>, tensor<1xi32>, tensor<5xf32>) -> tensor<6x5xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<f32>
    %27 = "stablehlo.reduce_window"(%arg0, %26) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %54 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %54 : tensor<f32>
    }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
    %28 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<6x5xf32>) -> tensor<1x6x5x1xf32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x3x1x2xf32>
    %30 = stablehlo.convolution(%28, %29) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x6x5x1xf32>, tensor<3x3x1x2xf32>) -> tensor<1x6x5x2xf32>
    %31 = call @argmax(%arg0) : (tensor<6x5xf32>) -> tensor<6xi32>
    %32 = call @fft(%arg0) : (tensor<6x5xf32>) -> tensor<6x3xcomplex<f32>>
    %33 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<6x5xf32>
    %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<6x5xf32> -> (tensor<6x2xf32>, tensor<6x2xi32>)
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %34 = stablehlo.pad %arg0, %cst_8, low = [1, 0], high = [-1, 2], interior = [0, 1] : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x11xf32>
    %35 = stablehlo.slice %arg0 [0:1, 0:2] : (tensor<6x5xf32>) -> tensor<1x2xf32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %36 = stablehlo.compare LT, %arg1, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %37 = stablehlo.convert %arg1 : tensor<i32>
    %c_10 = stablehlo.constant dense<6> : tensor<i32>
    %38 = stablehlo.add %37, %c_10 : tensor<i32>
    %39 = stablehlo.select %36, %38, %arg1 : tensor<i1>, tensor<i32>
    %c_11 = stablehlo.constant dense<1> : tensor<i32>
    %40 = stablehlo.dynamic_update_slice %arg0, %35, %39, %c_11 : (tensor<6x5xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<6x5xf32>
    %41 = stablehlo.bitcast_convert %arg0 : (tensor<6x5xf32>) -> tensor<6x5xui32>
    %c_12 = stablehlo.constant dense<3> : tensor<ui32>
    %42 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<ui32>) -> tensor<6x5xui32>
    %43 = stablehlo.shift_right_logical %41, %42 : tensor<6x5xui32>
    %44 = stablehlo.reshape %0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %45 = stablehlo.bitcast_convert %44 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state, %output = stablehlo.rng_bit_generator %45, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui32>)
    %46 = stablehlo.bitcast_convert %output_state : (tensor<2xui64>) -> tensor<2x2xui32>
    %47 = stablehlo.reshape %46 : (tensor<2x2xui32>) -> tensor<4xui32>
    %48 = stablehlo.reverse %arg0, dims = [0] : tensor<6x5xf32>
    %cst_13 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_14 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %50 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %51 = stablehlo.clamp %49, %arg0, %50 : tensor<6x5xf32>
    %52 = chlo.erf %arg0 : tensor<6x5xf32> -> tensor<6x5xf32>
    %53 = call @cumsum(%arg0) : (tensor<6x5xf32>) -> tensor<6x5xf32>
    return %4#0, %10, %18, %25, %27, %30, %31, %32, %33, %values, %indices, %34, %40, %43, %48, %51, %output, %52, %53 : tensor<6xf32>, tensor<5xf32>, tensor<2x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<1x6x5x2xf32>, tensor<6xi32>, tensor<6x3xcomplex<f32>>, tensor<6x5xf32>, tensor<6x2xf32>, tensor<6x2xi32>, tensor<6x11xf32>, tensor<6x5xf32>, tensor<6x5xui32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<ui32>, tensor<6x5xf32>, tensor<6x5xf32>
  }
  func.func private @argmax(%arg0: tensor<6x5xf32>) -> tensor<6xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<6x5xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<6x5xf32>, tensor<6x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<6xi32>
  }
  func.func private @fft(%arg0: tensor<6x5xf32>) -> tensor<6x3xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [5] : (tensor<6x5xf32>) -> tensor<6x3xcomplex<f32>>
    return %0 : tensor<6x3xcomplex<f32>>
  }
  func.func private @cumsum(%arg0: tensor<6x5xf32>) -> tensor<6x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[5, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 6, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
    return %1 : tensor<6x5xf32>
  }
}
