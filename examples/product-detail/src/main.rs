//! The product-detail example.

fn main() {}
