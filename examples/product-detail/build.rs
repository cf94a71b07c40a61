//! The build script: a new migration causes a new build.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
