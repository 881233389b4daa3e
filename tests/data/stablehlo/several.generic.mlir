"builtin.module"() <{sym_name = "jit_several"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<[]>, sym_name = "empty_mesh"}> {stablehlo.mesh = {axes = []}} : () -> ()
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<6x5xf32>, tensor<i32>, tensor<4xui32>) -> (tensor<6xf32>, tensor<5xf32>, tensor<2x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<1x6x5x2xf32>, tensor<6xi32>, tensor<6x3xcomplex<f32>>, tensor<6x5xf32>, tensor<6x2xf32>, tensor<6x2xi32>, tensor<6x11xf32>, tensor<6x5xf32>, tensor<6x5xui32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<ui32>, tensor<6x5xf32>, tensor<6x5xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}, {jax.result_info = "result[9][0]"}, {jax.result_info = "result[9][1]"}, {jax.result_info = "result[10]"}, {jax.result_info = "result[11]"}, {jax.result_info = "result[12]"}, {jax.result_info = "result[13]"}, {jax.result_info = "result[14]"}, {jax.result_info = "result[15]"}, {jax.result_info = "result[16]"}, {jax.result_info = "result[17]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg9: tensor<6x5xf32>, %arg10: tensor<i32>, %arg11: tensor<4xui32>):
    %18 = "sdy.sharding_constraint"(%arg11) <{sharding = #sdy.sharding<@empty_mesh, [{}]>}> : (tensor<4xui32>) -> tensor<4xui32>
    %19 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 6, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x5xf32>) -> tensor<6x1xf32>
    %20 = "stablehlo.reshape"(%19) : (tensor<6x1xf32>) -> tensor<6xf32>
    %21 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<6xi32>
    %22:2 = "stablehlo.sort"(%20, %21) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg22: tensor<f32>, %arg23: tensor<f32>, %arg24: tensor<i32>, %arg25: tensor<i32>):
      %112 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %113 = "stablehlo.compare"(%arg22, %112) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %114 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %115 = "stablehlo.select"(%113, %114, %arg22) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %116 = "stablehlo.compare"(%arg22, %arg22) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %117 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
      %118 = "stablehlo.select"(%116, %117, %115) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %119 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %120 = "stablehlo.compare"(%arg23, %119) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %121 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %122 = "stablehlo.select"(%120, %121, %arg23) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %123 = "stablehlo.compare"(%arg23, %arg23) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %124 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
      %125 = "stablehlo.select"(%123, %124, %122) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %126 = "stablehlo.compare"(%118, %125) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%126) : (tensor<i1>) -> ()
    }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
    %23 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %24:3 = "stablehlo.while"(%arg9, %23, %arg9) ({
    ^bb0(%arg19: tensor<6x5xf32>, %arg20: tensor<i32>, %arg21: tensor<6x5xf32>):
      %110 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %111 = "stablehlo.compare"(%arg20, %110) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%111) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg16: tensor<6x5xf32>, %arg17: tensor<i32>, %arg18: tensor<6x5xf32>):
      %101 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %102 = "stablehlo.add"(%arg17, %101) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %103 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %104 = "stablehlo.broadcast_in_dim"(%103) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x5xf32>
      %105 = "stablehlo.multiply"(%arg18, %104) : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
      %106 = "stablehlo.slice"(%arg16) <{limit_indices = array<i64: 1, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x5xf32>) -> tensor<1x1xf32>
      %107 = "stablehlo.reshape"(%106) : (tensor<1x1xf32>) -> tensor<f32>
      %108 = "stablehlo.broadcast_in_dim"(%107) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x5xf32>
      %109 = "stablehlo.add"(%105, %108) : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
      "stablehlo.return"(%arg16, %102, %109) : (tensor<6x5xf32>, tensor<i32>, tensor<6x5xf32>) -> ()
    }) : (tensor<6x5xf32>, tensor<i32>, tensor<6x5xf32>) -> (tensor<6x5xf32>, tensor<i32>, tensor<6x5xf32>)
    %25 = "stablehlo.slice"(%24#2) <{limit_indices = array<i64: 2, 5>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 1>}> : (tensor<6x5xf32>) -> tensor<1x5xf32>
    %26 = "stablehlo.reshape"(%25) : (tensor<1x5xf32>) -> tensor<5xf32>
    %27 = "stablehlo.convert"(%arg10) : (tensor<i32>) -> tensor<i32>
    %28 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %29 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %30 = "stablehlo.clamp"(%28, %27, %29) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %31 = "stablehlo.case"(%30) ({
      %98 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %99 = "stablehlo.broadcast_in_dim"(%98) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5xf32>
      %100 = "stablehlo.add"(%26, %99) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      "stablehlo.return"(%100) : (tensor<5xf32>) -> ()
    }, {
      %94 = "stablehlo.sine"(%26) : (tensor<5xf32>) -> tensor<5xf32>
      %95 = "stablehlo.slice"(%24#2) <{limit_indices = array<i64: 1, 5>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x5xf32>) -> tensor<1x5xf32>
      %96 = "stablehlo.reshape"(%95) : (tensor<1x5xf32>) -> tensor<5xf32>
      %97 = "stablehlo.multiply"(%94, %96) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      "stablehlo.return"(%97) : (tensor<5xf32>) -> ()
    }, {
      %93 = "stablehlo.negate"(%26) : (tensor<5xf32>) -> tensor<5xf32>
      "stablehlo.return"(%93) : (tensor<5xf32>) -> ()
    }) : (tensor<i32>) -> tensor<5xf32>
    %32 = "stablehlo.slice"(%22#1) <{limit_indices = array<i64: 2>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<6xi32>) -> tensor<2xi32>
    %33 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %35 = "stablehlo.compare"(%32, %34) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %36 = "stablehlo.constant"() <{value = dense<6> : tensor<i32>}> : () -> tensor<i32>
    %37 = "stablehlo.broadcast_in_dim"(%36) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %38 = "stablehlo.add"(%32, %37) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %39 = "stablehlo.select"(%35, %38, %32) : (tensor<2xi1>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %40 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xi32>) -> tensor<2x1xi32>
    %41 = "stablehlo.gather"(%arg9, %40) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5>}> : (tensor<6x5xf32>, tensor<2x1xi32>) -> tensor<2x5xf32>
    %42 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %43 = "stablehlo.compare"(%arg10, %42) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %44 = "stablehlo.constant"() <{value = dense<6> : tensor<i32>}> : () -> tensor<i32>
    %45 = "stablehlo.add"(%arg10, %44) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %46 = "stablehlo.select"(%43, %45, %arg10) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %47 = "stablehlo.convert"(%46) : (tensor<i32>) -> tensor<i32>
    %48 = "stablehlo.broadcast_in_dim"(%47) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %49 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %50 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5xf32>
    %51 = "stablehlo.scatter"(%arg9, %48, %50) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg14: tensor<f32>, %arg15: tensor<f32>):
      %92 = "stablehlo.add"(%arg14, %arg15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%92) : (tensor<f32>) -> ()
    }) : (tensor<6x5xf32>, tensor<1xi32>, tensor<5xf32>) -> tensor<6x5xf32>
    %52 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %53 = "stablehlo.broadcast_in_dim"(%52) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %54 = "stablehlo.reduce_window"(%arg9, %53) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %91 = "stablehlo.maximum"(%arg12, %arg13) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%91) : (tensor<f32>) -> ()
    }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
    %55 = "stablehlo.broadcast_in_dim"(%arg9) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<6x5xf32>) -> tensor<1x6x5x1xf32>
    %56 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %57 = "stablehlo.broadcast_in_dim"(%56) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x3x1x2xf32>
    %58 = "stablehlo.convolution"(%55, %57) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<1> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<1x6x5x1xf32>, tensor<3x3x1x2xf32>) -> tensor<1x6x5x2xf32>
    %59 = "func.call"(%arg9) <{callee = @argmax}> : (tensor<6x5xf32>) -> tensor<6xi32>
    %60 = "func.call"(%arg9) <{callee = @fft}> : (tensor<6x5xf32>) -> tensor<6x3xcomplex<f32>>
    %61 = "stablehlo.reduce_precision"(%arg9) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<6x5xf32>) -> tensor<6x5xf32>
    %62:2 = "chlo.top_k"(%arg9) <{k = 2 : i64}> : (tensor<6x5xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
    %63 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %64 = "stablehlo.pad"(%arg9, %63) <{edge_padding_high = array<i64: -1, 2>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 1>}> : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x11xf32>
    %65 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 1, 2>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<6x5xf32>) -> tensor<1x2xf32>
    %66 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %67 = "stablehlo.compare"(%arg10, %66) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %68 = "stablehlo.convert"(%arg10) : (tensor<i32>) -> tensor<i32>
    %69 = "stablehlo.constant"() <{value = dense<6> : tensor<i32>}> : () -> tensor<i32>
    %70 = "stablehlo.add"(%68, %69) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %71 = "stablehlo.select"(%67, %70, %arg10) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %72 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %73 = "stablehlo.dynamic_update_slice"(%arg9, %65, %71, %72) : (tensor<6x5xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<6x5xf32>
    %74 = "stablehlo.bitcast_convert"(%arg9) : (tensor<6x5xf32>) -> tensor<6x5xui32>
    %75 = "stablehlo.constant"() <{value = dense<3> : tensor<ui32>}> : () -> tensor<ui32>
    %76 = "stablehlo.broadcast_in_dim"(%75) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6x5xui32>
    %77 = "stablehlo.shift_right_logical"(%74, %76) : (tensor<6x5xui32>, tensor<6x5xui32>) -> tensor<6x5xui32>
    %78 = "stablehlo.reshape"(%18) : (tensor<4xui32>) -> tensor<2x2xui32>
    %79 = "stablehlo.bitcast_convert"(%78) : (tensor<2x2xui32>) -> tensor<2xui64>
    %80:2 = "stablehlo.rng_bit_generator"(%79) <{rng_algorithm = #stablehlo<rng_algorithm DEFAULT>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui32>)
    %81 = "stablehlo.bitcast_convert"(%80#0) : (tensor<2xui64>) -> tensor<2x2xui32>
    %82 = "stablehlo.reshape"(%81) : (tensor<2x2xui32>) -> tensor<4xui32>
    %83 = "stablehlo.reverse"(%arg9) <{dimensions = array<i64: 0>}> : (tensor<6x5xf32>) -> tensor<6x5xf32>
    %84 = "stablehlo.constant"() <{value = dense<-1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %85 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %86 = "stablehlo.broadcast_in_dim"(%84) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x5xf32>
    %87 = "stablehlo.broadcast_in_dim"(%85) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x5xf32>
    %88 = "stablehlo.clamp"(%86, %arg9, %87) : (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
    %89 = "chlo.erf"(%arg9) : (tensor<6x5xf32>) -> tensor<6x5xf32>
    %90 = "func.call"(%arg9) <{callee = @cumsum}> : (tensor<6x5xf32>) -> tensor<6x5xf32>
    "func.return"(%22#0, %31, %41, %51, %54, %58, %59, %60, %61, %62#0, %62#1, %64, %73, %77, %83, %88, %80#1, %89, %90) : (tensor<6xf32>, tensor<5xf32>, tensor<2x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<1x6x5x2xf32>, tensor<6xi32>, tensor<6x3xcomplex<f32>>, tensor<6x5xf32>, tensor<6x2xf32>, tensor<6x2xi32>, tensor<6x11xf32>, tensor<6x5xf32>, tensor<6x5xui32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<ui32>, tensor<6x5xf32>, tensor<6x5xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x5xf32>) -> tensor<6xi32>, sym_name = "argmax", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<6x5xf32>):
    %5 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<6x5xi32>
    %6 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %8:2 = "stablehlo.reduce"(%arg4, %5, %6, %7) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<i32>, %arg7: tensor<f32>, %arg8: tensor<i32>):
      %9 = "stablehlo.compare"(%arg5, %arg7) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = "stablehlo.compare"(%arg5, %arg5) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %11 = "stablehlo.or"(%9, %10) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %12 = "stablehlo.compare"(%arg5, %arg7) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %13 = "stablehlo.compare"(%arg6, %arg8) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %14 = "stablehlo.and"(%12, %13) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %15 = "stablehlo.or"(%11, %14) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %16 = "stablehlo.select"(%11, %arg5, %arg7) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %17 = "stablehlo.select"(%15, %arg6, %arg8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%16, %17) : (tensor<f32>, tensor<i32>) -> ()
    }) : (tensor<6x5xf32>, tensor<6x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
    "func.return"(%8#1) : (tensor<6xi32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<6x5xf32>) -> tensor<6x3xcomplex<f32>>, res_attrs = [{}], sym_name = "fft", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<6x5xf32>):
    %4 = "stablehlo.fft"(%arg3) <{fft_length = array<i64: 5>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<6x5xf32>) -> tensor<6x3xcomplex<f32>>
    "func.return"(%4) : (tensor<6x3xcomplex<f32>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x5xf32>) -> tensor<6x5xf32>, sym_name = "cumsum", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<6x5xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %2 = "stablehlo.reduce_window"(%arg0, %1) <{base_dilations = array<i64: 1, 1>, padding = dense<[[5, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 6, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %3 = "stablehlo.add"(%arg1, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
    "func.return"(%2) : (tensor<6x5xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()

