//! Tables of the documentation are those of the code.

use lab::experiment::keys;
use lab::figure;
use testing::document::assert_block;

#[test]
fn tables_of_the_documentation_are_those_of_the_code() {
    for (name, block) in keys::markdown().into_iter().chain([figure::markdown()]) {
        assert_block("docs/experiments.md", name, &block);
    }
}
