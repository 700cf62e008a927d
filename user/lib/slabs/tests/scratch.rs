//! scratch
use tench_slabs::*;
#[test]
fn look() {
    for n in 0..3 {
        for p in [Policy::BestFit, Policy::NextFit] {
            let r = replay(&mut TraceSource::new(&sequence(&SEQUENCES[n])), &Options::new(p)).unwrap();
            println!("seq {} {p} {}", n + 1, r.outcome.json());
            let mut o = Options::new(p);
            o.accounting = printed_account(&SEQUENCES[n]);
            let r = replay(&mut TraceSource::new(&sequence(&SEQUENCES[n])), &o).unwrap();
            let k = |x: u64| x as f64 / 1024.0;
            let (p, m) = (r.outcome.peaks, r.outcome.means);
            println!(
                "   printed {:.2} {:.2} {:.2} avg {:.2} {:.2} {:.2}",
                k(p.watermark),
                k(p.alignment),
                k(p.total),
                k(m.watermark) / 100.,
                k(m.alignment) / 100.,
                k(m.total) / 100.
            );
        }
    }
}
