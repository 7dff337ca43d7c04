//! TEMPORARY.
tenferro_runtime::surfaces! {
    traits LinalgRecorded, LinalgTensor, LinalgTyped;
    /// solve
    fn solve(x, b: T) -> [T] = tenferro_linalg::ops::solve(x, b);
    /// svd
    fn svd(x) -> [T, R, T] = { let (u, s, v) = tenferro_linalg::ops::svd(x); [u, s, v] };
}
