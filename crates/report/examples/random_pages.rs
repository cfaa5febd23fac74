//! Makes the pages of random experiments, to see that none panics: `random_pages FROM TO`.

#[path = "../tests/page/whole.rs"]
#[allow(dead_code)]
mod whole;

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    let [from, to] = words[..] else { return eprintln!("random_pages FROM TO") };
    let mut made = 0;
    for number in from..to {
        match whole::pages(number) {
            Ok(_) => made += 1,
            Err(refused) => println!("{number}: {refused}"),
        }
    }
    println!("{made} of {}", to - from);
}
