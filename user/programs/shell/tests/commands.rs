//! Commands and sessions in a made-up system.

mod common;

use common::{Fake, answers, answers_of, session};
use tench_procs_client::protocol::State;
use tench_shell::commands;
use tench_shell::system::Input;

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(answers(&[line]), expected, "{line}");
}

#[test]
fn every_command_is_explained() {
    let list = answers(&["help"]);
    for command in commands::all() {
        assert!(list.contains(command.summary), "{}", command.name);
        let help = answers(&[&format!("help {}", command.name)]);
        assert!(help.starts_with(&format!("usage: {}", command.usage_line())), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        assert!(command.help.ends_with('.') && !command.summary.ends_with('.'), "{}", command.name);
    }
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let names: Vec<&str> = commands::all().map(|command| command.name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(names.len(), unique.len());
}

#[test]
fn mistakes_get_one_helpful_line() {
    let cases = [
        ("hlep", "no command or program hlep; did you mean help?\n"),
        ("tiemr 3", "no command or program tiemr; did you mean timer?\n"),
        ("xyzzy", "no command or program xyzzy; help lists the commands, ls bin the programs\n"),
        ("run xyzzy", "run: no command or program xyzzy; help lists the commands, ls bin the programs\n"),
        ("run", "run: the program is missing; usage: run [--quota BYTES] PROGRAM [ARGUMENT...] [&]\n"),
        ("run --quota", "run: the bytes are missing; usage: run [--quota BYTES] PROGRAM [ARGUMENT...] [&]\n"),
        (
            "run --quota 3X hello",
            "run: 3X is not a number of bytes, such as 4096, 64K or 2M; usage: run [--quota BYTES] PROGRAM [ARGUMENT...] \
             [&]\n",
        ),
        (
            "run --quota 99999999999G hello",
            "run: 99999999999G is not a number of bytes, such as 4096, 64K or 2M; usage: run [--quota BYTES] PROGRAM \
             [ARGUMENT...] [&]\n",
        ),
        ("run --quota 16K hello", "run: there is not enough memory\n"),
        ("help hlep", "help: no command hlep; did you mean help?\n"),
        ("help timer", "help: timer is a program, not a command; timer runs it\n"),
        ("kill shell", "kill: nothing is behind the first shell; poweroff switches the machine off\n"),
        ("help one two", "help: one argument is enough, but two follows; usage: help [COMMAND]\n"),
        ("echo 'a", "the closing ' is missing; write \\' for the character itself\n"),
        ("echo a &", "echo: only programs can run in the background; usage: echo [WORD...]\n"),
        ("uptime now", "uptime: it takes no argument, but now was given; usage: uptime\n"),
        ("ps -x", "ps: there is no option -x; usage: ps [-a] [--short]\n"),
        ("kill", "kill: the process is missing; usage: kill PID|NAME...\n"),
        ("kill 99", "kill: no process 99; ps lists them\n"),
        ("kill consoel", "kill: no process consoel; did you mean console?\n"),
        ("kill xyzzy", "kill: no process xyzzy; ps lists them\n"),
        ("wait", "wait: the process is missing; usage: wait PID|NAME\n"),
        ("wait shell", "wait: the shell cannot wait for itself\n"),
        ("suspend shell", "suspend: nobody could resume the shell\n"),
        ("suspend 5", "suspend: the shell could not be seen or heard without the console\n"),
        ("resume mem", "resume: process 2 is not suspended\n"),
        ("caps", "caps: the process is missing; usage: caps [--count] PID|NAME\n"),
        ("cat", "cat: the file is missing; usage: cat FILE...\n"),
        ("cat bin", "cat: bin is a directory; ls bin lists it\n"),
        ("cat bin/hello", "cat: bin/hello is not text (5 bytes)\n"),
        ("cat etc/mtod", "cat: no etc/mtod in the boot archive; did you mean etc/motd?\n"),
        ("ls nowhere", "ls: no nowhere in the boot archive; ls lists what there is\n"),
        ("time", "time: the command is missing; usage: time COMMAND [ARGUMENT...]\n"),
        ("poweroff 256", "poweroff: STATUS is a number from 0 to 255, not 256; usage: poweroff [STATUS]\n"),
        ("exit", "exit: nothing is behind the first shell; poweroff switches the machine off\n"),
    ];
    for (line, expected) in cases {
        check(line, expected);
    }
}

#[test]
fn words_and_files_are_printed() {
    check("echo", "\n");
    check("echo one 'two  three' # four", "one two  three\n");
    check("", "");
    check("# nothing", "");
    check("ls", "bin/\netc/\nshare/\n");
    check("ls /", "bin/\netc/\nshare/\n");
    check("ls bin", "crash\nhello\nkill\ntimer\n");
    check("ls ./share/", "no-end.txt\numlauts.txt\n");
    check("ls etc/motd", "etc/motd\n");
    check("ls -l", "BYTES  NAME\n   20  bin/\n    9  etc/\n   52  share/\n");
    check("cat /etc/motd etc/motd", "Welcome.\nWelcome.\n");
    check("cat share/umlauts.txt", "ääääääääääääää\n");
}

#[test]
fn the_system_is_shown() {
    check(
        "ps",
        "PID  PARENT  PRIORITY      TIME   MEMORY  STATE    NAME\n\
         \x20 1       0       101  1.000 ms        -  running  init\n\
         \x20 2       1       102  2.000 ms  300 KiB  running  mem\n\
         \x20 5       1       105  5.000 ms        -  running  console\n\
         \x20 7       1       107  7.000 ms  1.2 MiB  running  shell\n",
    );
    check("ps --short", "STATE    NAME\nrunning  init\nrunning  mem\nrunning  console\nrunning  shell\n");
    check("mem --total", "1 GiB, of which 700 MiB free, at most 512 MiB of it in one piece\n");
    check(
        "mem",
        "1 GiB, of which 700 MiB free, at most 512 MiB of it in one piece\n\
         PID     USED  QUOTA  BLOCKS  NAME\n  2  300 KiB      -       4  mem\n  7  1.2 MiB  4 MiB       5  shell\n",
    );
    check(
        "mem --map",
        &format!(
            "1 GiB, of which 700 MiB free, at most 512 MiB of it in one piece\n\
             each character 8 KiB: # used, = half or more, - less, . free\n\
             {}0x0040300000 {dots}\n0x0040380000 {dots}\n0x0040400000 {nothing}\n0x0040480000 {nothing}\n\
             0x0040500000 {used}\n0x0040580000 {dots}\n",
            (0..6).map(|n| format!("{:#012x} {}\n", 0x4000_0000 + (n << 19), "#".repeat(64))).collect::<String>(),
            used = "#".repeat(64),
            dots = ".".repeat(64),
            nothing = " ".repeat(64),
        ),
    );
    check("names", "NAME     PID  PROCESS\nclock     99  -\nconsole    5  console\n");
    check(
        "caps shell",
        "SLOT  KIND             RIGHTS   SIZE  BADGE      OBJECT  USE\n\
         \x20  1  capability node  rwgc    128 B      -           -  own capability space\n\
         \x20  8  endpoint         rwgc     32 B      9           -  memory server\n\
         \x20 16  interrupt        -w--        -      -          33  given by the parent\n\
         \x20 48  frame            r---    4 KiB      -  0x41234000\n\
         \x20300  frame            ----    2 MiB      -  0x41200000\n",
    );
    check("caps --count 7", "COUNT  KIND\n    1  capability node\n    2  frame\n    1  endpoint\n    1  interrupt\n");
    check("uptime", "up 5.000 s, 66.6 % idle\n");
    let kernel = answers(&["kernel"]);
    assert!(kernel.starts_with("deepest use of a kernel stack      1,000 bytes\nwindows "), "{kernel}");
    assert!(kernel.ends_with("idle                               3.333 s\n"), "{kernel}");
}

#[test]
fn programs_end_in_different_ways() {
    check("hello", "hello, no line feed");
    check("run kill", "hello, no line feed\n[exited with 3]\n");
    check("crash", "a report\n[crashed: guard page]\n");
    check("timer", "a report\n[killed]\n");
    check("time timer 3", "a report\n[killed]\n1,234,567 instructions, 62.500 ms\n");
    check("time echo a", "a\n0 instructions, 0 µs\n");
    check(
        "time xyzzy",
        "no command or program xyzzy; help lists the commands, ls bin the programs\n0 instructions, 0 µs\n",
    );
}

#[test]
fn background_programs_are_reported_when_they_have_ended() {
    let mut system = Fake::new("init");
    let output = session(&mut system, "timer &\nrun hello 3 &\nkill timer\nwait 9\nps\n");
    let expected = "Welcome.\ntench> timer &\n[8] timer\ntench> run hello 3 &\n[9] hello\ntench> kill timer\n\
                    [8] timer killed\ntench> wait 9\nhello, no line feed[9] hello exited with 0\ntench> ps\n";
    assert!(output.starts_with(expected), "{output}");
    assert_eq!(system.killed, [8]);
}

#[test]
fn processes_are_found_by_name_and_number() {
    let mut system = Fake::new("init");
    let output = answers_of(&mut system, &["timer &", "timer &", "kill timer", "suspend 8", "suspend 8", "ps --short"]);
    let expected = "[8] timer\n[9] timer\nkill: several processes are called timer; give one of 8, 9\n\
                    suspend: process 8 is suspended already\n\
                    STATE      NAME\nrunning    init\nrunning    mem\nrunning    console\nrunning    shell\n\
                    suspended  timer\nrunning    timer\n";
    assert_eq!(output, expected);
    let output = answers_of(&mut system, &["resume 8", "kill 8 9", "kill 8", "kill timer", "ps -a --short", "wait 9"]);
    let expected = "kill: process 8 has been killed\nkill: no process timer; ps lists them\n\
                    STATE    NAME\nrunning  init\nrunning  mem\nrunning  console\nrunning  shell\n\
                    killed   timer\nkilled   timer\n[9] timer killed\n";
    assert_eq!(output, expected);
    assert_eq!(system.processes[5].state, State::Killed);
}

#[test]
fn control_c_ends_waiting() {
    let mut system = Fake::new("init");
    assert_eq!(answers_of(&mut system, &["timer &", "wait timer"]), "[8] timer\n");
    assert_eq!(system.killed, [0; 0]);
}

#[test]
fn poweroff_has_a_status() {
    let mut system = Fake::new("init");
    answers_of(&mut system, &["poweroff", "poweroff 3", "poweroff -1", "poweroff x"]);
    assert_eq!(system.power_offs, [0, 3]);
}

#[test]
fn the_first_shell_stays() {
    let output = session(&mut Fake::new("init"), "\x04exit\n");
    let expected = "Welcome.\ntench> \nnothing is behind the first shell; poweroff switches the machine off\n\
                    tench> exit\nexit: nothing is behind the first shell; poweroff switches the machine off\ntench> ";
    assert_eq!(output, expected);
}

#[test]
fn other_shells_can_be_left() {
    assert_eq!(session(&mut Fake::new("rps"), ""), "tench> ");
    assert_eq!(session(&mut Fake::new("rps"), "exit\n"), "tench> exit\n");
    assert_eq!(session(&mut Fake::new("rps"), "\x04"), "tench> \n");
}

#[test]
fn editing_and_completion_work_together() {
    let output = session(&mut Fake::new("rps"), "ec\t\x1b[Dx\x7f one\nabc\x03cat et\t\t\nhistory\nexit\n");
    assert!(output.contains("\ntench> abc^C\ntench> cat etc/motd \nWelcome.\n"), "{output:?}");
    assert!(output.contains("   1  echo one \n   2  cat etc/motd \n   3  history\n"), "{output:?}");
}

#[test]
fn the_prompt_stands_at_the_start_of_a_line() {
    let output = session(&mut Fake::new("rps"), "cat share/no-end.txt\nhello\nexit\n");
    assert_eq!(
        output,
        "tench> cat share/no-end.txt\nno line feed at the end\ntench> hello\nhello, no line feed\ntench> exit\n"
    );
}

#[test]
fn a_terminal_of_others_edits_itself() {
    let mut system = Fake::new("shell");
    system.has_terminal = false;
    system.types("echo a\n");
    system.reads(Input::Interrupted);
    // The echo of what is typed is the terminal's business.
    assert_eq!(session(&mut system, "echo b\nex"), "tench> a\ntench> \ntench> b\ntench> ");
}
