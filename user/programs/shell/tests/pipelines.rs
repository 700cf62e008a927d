//! Tests of pipelines, redirection and jobs in a fake system.

mod common;

use common::{Fake, output, output_of, session};
use tench_procs_interface::protocol::State;
use tench_shell::system::{End, OnKey, Terminal, Waited};

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(output(&[line]), expected, "{line}");
}

#[test]
fn output_of_one_is_input_of_the_next() {
    check("hello | cat", "hello, no line feed");
    check("hello | cat | cat | grep no", "hello, no line feed\n");
    check("hello | grep nothing", "");
    check("echo one two | cat", "one two\n");
    check("echo one; echo two | grep o", "one\ntwo\n");
    check("ps --short | grep shell", "running  shell\n");
    check("run hello | run --quota 1M cat", "hello, no line feed");
    check("time hello | grep hello", "hello, no line feed\n2,469,134 instructions, 125.000 ms\n");
    // A command reads nothing.
    check("hello | echo a", "a\n");
    check("echo a | echo b | cat", "b\n");
    check(
        "help | grep 'list the commands' | cat",
        "help [COMMAND]                  list the commands, or explain one\n",
    );
    let hundred = format!("hello {}", "| cat ".repeat(100));
    check(&hundred, "hello, no line feed");
}

#[test]
fn files_replace_the_terminal() {
    let lines = ["hello > tmp/a", "cat < tmp/a", "cat tmp/a", "echo more >> tmp/a", "cat <tmp/a|cat", "ls -l tmp"];
    let once = "hello, no line feed";
    assert_eq!(output(&lines), format!("{once}{once}{once}more\nBYTES  NAME\n   24  a\n"));
    check("echo long enough > tmp/a; echo x > tmp/a; cat tmp/a", "x\n");
    // Errors have a stream of their own.
    check("warn | cat", "a warning\n");
    check("warn > tmp/a 2> tmp/b; cat tmp/a; echo -; cat tmp/b", "-\na warning\n");
    check("warn 2>&1 | grep warning > tmp/a; cat tmp/a", "a warning\n");
    check("warn 2>> tmp/a; warn > tmp/b 2>&1; cat tmp/a tmp/b", "a warning\na warning\n");
    check("uptime now 2> tmp/e; cat tmp/e", "uptime: it takes no argument, but now was given; usage: uptime\n");
    check("uptime now > tmp/e 2>&1; cat tmp/e", "uptime: it takes no argument, but now was given; usage: uptime\n");
    check("uptime now > tmp/e; cat tmp/e", "uptime: it takes no argument, but now was given; usage: uptime\n");
    check("fail > tmp/a", "[exited with 3]\n");
}

#[test]
fn an_error_is_reported_once() {
    check("fail | cat", "hello, no line feed\n[fail: exited with 3]\n");
    check("hello | fail", "hello, no line feed\n[fail: exited with 3]\n");
    check("crash | fail", "a report\nhello, no line feed\n[crash: crashed: guard page]\n[fail: exited with 3]\n");
    // To end because nobody reads any more is a failure only at the end of a pipeline.
    check("yes | hello", "hello, no line feed");
    check("yes", "[exited with 141]\n");
    // Ctrl-C kills all of them, and drops the rest of the line.
    check("timer | timer", "a report\na report\n[killed]\n");
    check("timer; echo not any more", "a report\n[killed]\n");
    check("fail; echo but this", "hello, no line feed\n[exited with 3]\nbut this\n");
    // This does not fit into a file.
    let much = "x".repeat(900);
    let line = format!("echo {much} > tmp/a").repeat(1) + &format!("; echo {much} >> tmp/a").repeat(5);
    check(&line, "writing ended: no space is left\nwriting ended: no space is left\n");
}

#[test]
fn no_program_starts_if_one_is_missing() {
    let mut system = Fake::new("init");
    let unknown = "no command or program xyzzy; help lists the commands, ls bin the programs\n";
    let count = system.processes.len();
    let output = output_of(
        &mut system,
        &[
            "hello | xyzzy > tmp/a",
            "xyzzy | hello",
            "hello < nothing | cat",
            "hello > tmp/a 2> bin/hello | cat",
            "hello 2> bin/hello > tmp/a",
            "cat | uptime &",
            "run --quota 1K hello | cat",
            "hello | cat | run --quota x",
        ],
    );
    let expected = [
        unknown,
        unknown,
        "nothing: there is no such file or directory\n",
        "output goes to | or to a file; tee FILE writes to both\n",
        "bin/hello: read only\n",
        "uptime: only programs can run in the background; usage: uptime\n",
        "run: there is not enough memory\n",
        "run: x is not a number of bytes, such as 4096, 64K or 2M; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
    ];
    assert_eq!(output, expected.concat());
    assert_eq!(system.streams.held(), 0);
    assert_eq!(system.processes.len(), count);
    // A file after the mistake is unchanged.
    assert_eq!(output_of(&mut system, &["ls tmp"]), "a\n");
}

#[test]
fn a_program_that_does_not_start_takes_the_others_with_it() {
    let mut system = Fake::new("init");
    system.defective = vec!["grep"];
    assert_eq!(output_of(&mut system, &["hello | grep x | cat"]), "grep cannot be loaded\n");
    assert_eq!(system.streams.held(), 0);
    let states: Vec<State> = system.processes.iter().skip(4).map(|process| process.state).collect();
    assert_eq!(states, [State::Killed]);
}

#[test]
fn a_program_that_ends_when_it_is_told_to_takes_the_rest_of_the_line_with_it() {
    let mut system = Fake::new("init");
    system.key = Some(Waited::EndedEarly(vec![Some(End::Exited(0))]));
    assert_eq!(output_of(&mut system, &["timer ; echo not any more", "echo next"]), "next\n");
    system.key = Some(Waited::EndedEarly(vec![Some(End::Killed)]));
    assert_eq!(output_of(&mut system, &["timer ; echo not any more"]), "[killed]\n");
    // Without a key, the line goes on.
    system.key = Some(Waited::Ended(vec![Some(End::Exited(0))]));
    assert_eq!(output_of(&mut system, &["timer ; echo more"]), "more\n");
}

#[test]
fn the_first_program_has_the_terminal() {
    let mut system = Fake::new("init");
    let foreground = |system: &mut Fake, line: &str| {
        system.key = Some(Waited::Interrupted);
        output_of(system, &[line]);
        system.foreground.clone()
    };
    assert_eq!(foreground(&mut system, "cat | cat"), (vec![8, 9], 8, Some(OnKey::Handle)));
    assert_eq!(foreground(&mut system, "cat < etc/motd | cat"), (vec![10, 11], 7, Some(OnKey::Handle)));
    assert_eq!(foreground(&mut system, "echo a | cat"), (vec![12], 7, Some(OnKey::Handle)));
    assert_eq!(foreground(&mut system, "wait 8"), (vec![8], 7, Some(OnKey::StopWaiting)));
}

/// Sequences that the shell writes when it takes the terminal back.
const RESTORE: &str = "\x18\x1b\\\x1b7\x1b[?1049l\x1b[!p\x1b[0m\x0f\x1b[?7h\x1b[?25h\
                       \x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l";

#[test]
fn the_terminal_is_lent_before_the_program_runs() {
    let mut system = Fake::new("init");
    let text = "hello, no line feed";
    let lines = ["run --terminal --quota 1M hello", "hello", "time run --terminal hello > tmp/a"];
    let time = "1,234,567 instructions, 62.500 ms\n";
    assert_eq!(output_of(&mut system, &lines), format!("{text}{RESTORE}{text}{RESTORE}{time}"));
    assert_eq!(system.lent, [(8, State::Preparing), (10, State::Preparing)]);
    assert_eq!(system.settings[0].quota, Some(1 << 20));
    // Its end is reported after that, in a line of its own.
    assert_eq!(output_of(&mut system, &["run --terminal fail"]), format!("{text}{RESTORE}\n[exited with 3]\n"));
}

#[test]
fn a_suspended_program_is_lent_the_terminal_again() {
    let mut system = Fake::new("init");
    let suspended = "[1] run --terminal hello: suspended; fg %1 or bg %1 lets it go on\n";
    system.key = Some(Waited::Suspended);
    let output = session(&mut system, "run --terminal hello\nbg\njobs\nfg\n");
    let expected = format!(
        "Welcome.\ntench> run --terminal hello\n{RESTORE}\n{suspended}\
         tench> bg\n[1] run --terminal hello\n\
         tench> jobs\nJOB  STATE    PROCESSES  COMMAND\n%1   running  8          run --terminal hello\n\
         tench> fg\nrun --terminal hello\nhello, no line feed{RESTORE}\ntench> "
    );
    assert_eq!(output, expected);
    assert_eq!(system.lent, [(8, State::Preparing), (8, State::Running)]);
    // A job that was not lent it is not lent it now.
    system.key = Some(Waited::Suspended);
    assert!(!session(&mut system, "hello\nfg\n").contains(RESTORE));
    assert_eq!(system.lent.len(), 2);
}

#[test]
fn a_terminal_of_others_is_not_lent() {
    let mut system = Fake::new("shell");
    system.terminal = Terminal::Others;
    let count = system.processes.len();
    let output = output_of(&mut system, &["run --terminal hello"]);
    assert_eq!(output, "run: the terminal is not this shell's\n");
    assert_eq!((system.processes.len(), system.lent.len()), (count, 0), "it did not run");
}

#[test]
fn jobs_have_numbers_and_are_reported_when_they_have_ended() {
    let mut system = Fake::new("init");
    let output = session(
        &mut system,
        "timer &\nhello | cat > tmp/a &\njobs\nkill %1\nwait %2\ncat tmp/a\nhello&\nwait hello\njobs\n",
    );
    let expected = "Welcome.\ntench> timer &\n[1] timer (process 8)\n\
                    tench> hello | cat > tmp/a &\n[2] hello | cat > tmp/a (processes 9, 10)\n\
                    tench> jobs\nJOB  STATE    PROCESSES  COMMAND\n%1   running  8          timer\n\
                    %2   running  9 10       hello | cat > tmp/a\n\
                    tench> kill %1\n[1] timer: killed\n\
                    tench> wait %2\n[2] hello | cat > tmp/a: exited with 0\n\
                    tench> cat tmp/a\nhello, no line feed\n\
                    tench> hello&\n[1] hello (process 12)\n\
                    tench> wait hello\nhello, no line feedprocess 12 (hello) exited with 0\n\
                    tench> jobs\ntench> ";
    assert_eq!(output, expected);
    assert_eq!(system.killed, [8]);
    assert_eq!(system.streams.held(), 0);
}

#[test]
fn the_state_of_a_job_is_that_of_its_last_program() {
    let mut system = Fake::new("init");
    let lines =
        ["fail | hello &", "crash | yes | fail &", "timer | timer &", "wait %1", "wait %2", "wait %3", "kill %3"];
    let output = output_of(&mut system, &lines);
    let expected = "[1] fail | hello (processes 8, 9)\n[2] crash | yes | fail (processes 10, 11, 12)\n\
                    [3] timer | timer (processes 13, 14)\n\
                    hello, no line feed\n[1] fail | hello: exited with 0 (fail exited with 3)\n\
                    a report\nhello, no line feed\n\
                    [2] crash | yes | fail: exited with 3 (crash crashed: guard page)\n";
    assert_eq!(output, expected);
    assert_eq!(system.killed, [13, 14]);
}

#[test]
fn control_c_ends_waiting() {
    let mut system = Fake::new("init");
    assert_eq!(output_of(&mut system, &["timer &", "wait timer", "wait %1"]), "[1] timer (process 8)\n");
    assert_eq!(system.killed, [0; 0]);
}

#[test]
fn control_z_makes_a_job() {
    let mut system = Fake::new("init");
    system.key = Some(Waited::Suspended);
    let output = output_of(&mut system, &["hello | cat; echo not any more", "jobs", "fg", "jobs"]);
    let expected = "[1] hello | cat: suspended; fg %1 or bg %1 lets it go on\n\
                    JOB  STATE      PROCESSES  COMMAND\n%1   suspended  8 9        hello | cat\n\
                    hello | cat\nhello, no line feed";
    assert_eq!(output, expected);
    // This works repeatedly, with the same number; bg lets it run on.
    system.key = Some(Waited::Suspended);
    assert_eq!(output_of(&mut system, &["timer"]), "[1] timer: suspended; fg %1 or bg %1 lets it go on\n");
    system.key = Some(Waited::Suspended);
    let lines = ["timer &", "hello &", "fg %1", "bg %1", "bg %1", "suspend %2", "jobs", "resume %2", "fg"];
    let output = output_of(&mut system, &lines);
    let expected = "[1] timer (process 11)\n[2] hello (process 12)\n\
                    timer\n[1] timer: suspended; fg %1 or bg %1 lets it go on\n[1] timer\n\
                    bg: job %1 is not suspended\n\
                    JOB  STATE      PROCESSES  COMMAND\n%1   running    11         timer\n%2   suspended  12         hello\n\
                    hello\nhello, no line feed";
    assert_eq!(output, expected);
}

#[test]
fn only_the_named_die() {
    let mut system = Fake::new("init");
    let output = output_of(&mut system, &["timer &", "hello &", "timer | cat &", "killall timer", "killall timer"]);
    assert!(output.ends_with("killall: no process timer; ps lists them\n"), "{output}");
    assert_eq!(system.killed, [8, 10]);
}

#[test]
fn a_tree_shows_who_started_whom() {
    let mut system = Fake::new("init");
    output_of(&mut system, &["timer &", "hello &"]);
    system.find(7).unwrap().parent = 5;
    system.find(9).unwrap().parent = 8;
    system.end(5, State::Exited, 0);
    check_tree(&mut system, "ps", "init\n  mem\nshell\n  timer\n    hello\n");
    check_tree(&mut system, "ps 8", "timer\n  hello\n");
    check_tree(&mut system, "ps -a 1", "init\n  mem\n  console\n    shell\n      timer\n        hello\n");
    // Children of a process that has ended are at the left.
    system.end(8, State::Killed, 0);
    check_tree(&mut system, "ps", "init\n  mem\nshell\nhello\n");
    check_tree(&mut system, "ps -a 8", "timer\n  hello\n");
    let output = output_of(&mut system, &["ps --flat -a"]);
    assert!(output.contains(" 9       8  running "), "{output}");
}

/// Checks the content of the column of names.
#[track_caller]
fn check_tree(system: &mut Fake, line: &str, expected: &str) {
    let output = output_of(system, &[line]);
    let Some((head, rows)) = output.split_once('\n') else { panic!("{output}") };
    let column = head.find("NAME").unwrap();
    let names: String = rows.lines().map(|row| format!("{}\n", &row[column..])).collect();
    assert_eq!(names, expected, "{output}");
}

#[test]
fn a_thousand_processes_are_a_tree_in_no_time() {
    let mut system = Fake::new("init");
    let first = system.processes.last().unwrap().clone();
    system.processes.extend((100..10_100).map(|pid| {
        let parent = if pid % 3 == 0 { 7 } else { pid - 1 };
        tench_shell::system::Process { pid, parent: parent.max(7).min(pid - 1), ..first.clone() }
    }));
    let output = output_of(&mut system, &["ps"]);
    assert_eq!(output.lines().count(), 1 + 4 + 10_000);
}

#[test]
fn pictures_show_who_uses_the_processor() {
    let mut system = Fake::new("init");
    let output = output_of(&mut system, &["top -n 1"]);
    let expected = "up 5.000 s, 66.6 % idle, 4 processes, 700 MiB of 1 GiB free\n\
                    PID    CPU      TIME   MEMORY  STATE    NAME\n\
                    \x20 7  0.1 %  7.000 ms  1.2 MiB  running  shell\n\
                    \x20 5  0.1 %  5.000 ms        -  running  console\n\
                    \x20 2  0.0 %  2.000 ms  300 KiB  running  mem\n\
                    \x20 1  0.0 %  1.000 ms        -  running  init\n";
    assert_eq!(output, expected);
    // The second picture shows half a second in which no process ran; then a key ends it.
    system.types("\0xq");
    let output = output_of(&mut system, &["top -d 0.5 | cat"]);
    assert_eq!(output.matches("idle").count(), 2, "{output}");
    assert!(output.contains("\n\nup 5.500 s, 0.0 % idle"), "{output}");
    system.types("\0");
    let output = output_of(&mut system, &["top -n 2"]);
    assert!(
        output.starts_with("\x1b[?1049h\x1b[?25l\x1b[Hup ") && output.ends_with("\x1b[?25h\x1b[?1049l"),
        "{output:?}"
    );
}
