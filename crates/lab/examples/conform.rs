//! temp
fn main() {
    let detail = std::env::var("DETAIL").is_ok();
    for path in std::env::args().skip(1) {
        match lab::conform::conform(std::path::Path::new(&path), &Default::default()) {
            Ok(c) => {
                let name = path.rsplit('/').next().unwrap();
                let pc = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
                println!(
                    "{name:42} {:11} {:6} {:6} {:6} agree {} null {} free {} held {} {:?} {:?} {:?}",
                    c.scheduler, c.dispatches, c.contested, c.contested_deep,
                    pc(c.agreement()), pc(c.null_agreement()), pc(c.free_running()),
                    pc(c.withheld_agreement()), c.classes, c.tick_phase, c.remarks
                );
                if detail {
                    println!("   {:?}", c.first_difference);
                }
            }
            Err(e) => println!("{path}: {e}"),
        }
    }
}
