//! Thousands of runs that follow from seeds.

use tests_e2e::simulation::{run, run_traced};

#[test]
fn one() {
    let first: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let n: u64 = std::env::var("N").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let began = std::time::Instant::now();
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    let mut bad = 0;
    for seed in first..first + n {
        let report = if n == 1 { run_traced(seed) } else { run(seed) };
        for line in &report.trace {
            println!("{}", line.chars().take(400).collect::<String>());
        }
        for v in &report.violations {
            println!("{}", v.chars().take(600).collect::<String>());
        }
        bad += usize::from(!report.violations.is_empty());
        for (k, c) in report.counts {
            *counts.entry(k).or_default() += c;
        }
    }
    for (k, c) in &counts {
        println!("{c:>8} {k}");
    }
    println!("{bad} bad of {n} in {:?}", began.elapsed());
}
