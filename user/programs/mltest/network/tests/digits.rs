//! Tests that the network recognises drawings that it has never seen, and that integers give the scores of floating
//! point.

use std::sync::LazyLock;

use tench_mltest_network::digits::{Random, draw};
use tench_mltest_network::inference::{Damage, Page, infer};
use tench_mltest_network::model::{MULTIPLIER_AT, PAGE, PAGES, SIZE, quantise};
use tench_mltest_network::train::{Network, train};
use tench_mltest_network::{CLASSES, Picture, largest};

static NETWORK: LazyLock<Network> = LazyLock::new(train);
static MODEL: LazyLock<Vec<u8>> = LazyLock::new(|| quantise(&NETWORK));

fn scores(model: &[u8], picture: &Picture) -> Result<[i32; CLASSES], Damage> {
    infer(|index, page: &mut Page| page.copy_from_slice(&model[index * PAGE..][..PAGE]), picture)
}

/// Returns drawings that were not learnt from.
fn unseen() -> Vec<(usize, Picture)> {
    let mut random = Random::new(77);
    (0..500).map(|index| (index % CLASSES, draw(index % CLASSES, &mut random))).collect()
}

#[test]
fn unseen_digits_are_recognised() {
    let right = unseen().iter().filter(|(digit, picture)| largest(&scores(&MODEL, picture).unwrap()) == *digit).count();
    assert!(right >= 485, "{right} of 500");
}

/// Checks that a float score is an integer score times one step, the same for all, which is computed from all scores.
#[test]
fn integers_say_what_floating_point_says() {
    let mut pairs = Vec::new();
    let mut same = 0;
    for (_, picture) in unseen() {
        let (float, integer) = (NETWORK.scores(&picture), scores(&MODEL, &picture).unwrap());
        same += usize::from(largest(&float) == largest(&integer));
        pairs.extend(float.into_iter().zip(integer).map(|(float, integer)| (f64::from(float), f64::from(integer))));
    }
    assert!(same >= 495, "{same} of 500 pictures are read alike");
    let product: f64 = pairs.iter().map(|(float, integer)| float * integer).sum();
    let step = product / pairs.iter().map(|(_, integer)| integer * integer).sum::<f64>();
    let error = pairs.iter().map(|(float, integer)| (float - integer * step).abs()).fold(0.0, f64::max);
    assert!(error < 0.1, "scores differ by up to {error}, where 1 is yes and 0 is no");
}

#[test]
fn a_model_has_253_pages_and_each_matters() {
    assert_eq!((MODEL.len(), PAGES, SIZE), (253 * 4096, 253, 1_036_288));
    let (_, picture) = unseen()[3];
    let whole = scores(&MODEL, &picture).unwrap();
    for page in 1..PAGES {
        let mut damaged = MODEL.clone();
        // With the largest weight everywhere the damage changes the output of every unit.
        damaged[page * PAGE..][..PAGE].fill(127);
        assert_ne!(scores(&damaged, &picture).unwrap(), whole, "page {page}");
    }
}

#[test]
fn bytes_that_are_no_model_are_refused() {
    let (_, picture) = unseen()[0];
    assert_eq!(scores(&vec![0; SIZE], &picture), Err(Damage::NotAModel));
    let mut damaged = MODEL.clone();
    damaged[MULTIPLIER_AT + 3] = 0x80;
    assert!(matches!(scores(&damaged, &picture), Err(Damage::Multiplier(value)) if value < 0));
}

#[test]
fn digits_differ_from_drawing_to_drawing() {
    let mut random = Random::new(5);
    let (one, other) = (draw(4, &mut random), draw(4, &mut random));
    assert_ne!(one, other);
    assert_eq!(one, draw(4, &mut Random::new(5)));
}
