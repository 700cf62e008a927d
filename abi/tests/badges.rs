//! Tests of the contents of badges: no two clients have the same badge.

use tench_abi::Powers;
use tench_abi::power::{CORE_SHIFT, CORES, Client, FAMILIES, OBJECT, family, family_of, identity};

/// Clients of all kinds: processes of some cores, in a family or in none.
fn clients() -> impl Iterator<Item = Client> {
    let cores = [0, 1, CORES - 1].into_iter();
    let processes = cores.flat_map(|core| [1, 64, 65, 1 << 20, u64::from(u32::MAX)].map(|number| (core, number)));
    processes.flat_map(|(core, number)| {
        let process = core << CORE_SHIFT | number;
        let families = [1, 2, 64, FAMILIES - 1].map(|family| Client { process, family: family_of(core, family) });
        families.into_iter().chain([Client::alone(process)])
    })
}

#[test]
fn a_badge_says_who_and_what() {
    for client in clients() {
        for powers in Powers::all().iter().chain([Powers::empty(), Powers::all()]) {
            let badge = client.badge(powers);
            assert_eq!((Client::of_badge(badge), Powers::of_badge(badge)), (client, powers), "{badge:#x}");
            assert_eq!((identity(badge), family(badge)), (client.process, client.family));
            assert_eq!(identity(powers.badge(client.process)), client.process, "also without a family");
            assert_eq!(badge & OBJECT, 0);
        }
    }
}

#[test]
fn families_and_processes_are_not_mistaken_for_each_other() {
    let all: Vec<Client> = clients().collect();
    for one in &all {
        for other in &all {
            let is_same = one.badge(Powers::empty()) == other.badge(Powers::empty());
            assert_eq!(is_same, one == other);
            // Families of two cores are different, and who is alone is in nobody's.
            let is_related = one.process >> CORE_SHIFT == other.process >> CORE_SHIFT && one.family == other.family;
            assert_eq!(one.family == other.family, is_related);
            assert!(one.family != other.process || *one == Client::alone(other.process));
        }
    }
}

#[test]
fn object_badges_are_no_process_numbers() {
    for number in [0, 1, 5, 1 << 20, 1 << 38, OBJECT - 1] {
        let badge = number | OBJECT;
        assert_eq!(Client::of_badge(badge), Client::alone(badge));
        assert!(clients().all(|client| client.process != identity(badge) && client.family != family(badge)));
        assert!(Powers::of_badge(badge).is_empty());
    }
    assert_eq!(Client::of_badge(0), Client::AUTHORITY);
}
