//! Prints the table of operations.

fn main() {
    print!("{}", tenferro_testing::table(&tenferro_testing::all()));
}
