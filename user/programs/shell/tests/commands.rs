//! Tests of commands and sessions in a fake system.

mod common;

use std::time::Duration;

use common::{Fake, output, output_of, session};
use tench_abi::Powers;
use tench_procs_interface::protocol::State;
use tench_shell::commands;
use tench_shell::effective_settings;
use tench_shell::system::{End, Input, OnKey, Settings, Terminal, Waited};
use tench_system::{Capabilities, Cores, NO_QUOTA, Program, Shares, Strings, System as Description};

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(output(&[line]), expected, "{line}");
}

#[test]
fn every_command_is_explained() {
    let list = output(&["help"]);
    for command in commands::all() {
        assert!(list.contains(command.summary), "{}", command.name);
        let help = output(&[&format!("help {}", command.name)]);
        assert_eq!(output(&[&format!("{} --help", command.name)]), help, "{}", command.name);
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
        ("run", "run: the program is missing; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n"),
        ("run --quota", "run: the bytes are missing; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n"),
        (
            "run --quota 3X hello",
            "run: 3X is not a number of bytes, such as 4096, 64K or 2M; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        (
            "run --quota 99999999999G hello",
            "run: 99999999999G is not a number of bytes, such as 4096, 64K or 2M; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        ("run --slots", "run: the number is missing; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n"),
        (
            "run --slots 1M hello",
            "run: 1M is no number of capabilities, such as 1000000; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        ("run --terminal", "run: the program is missing; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n"),
        (
            "run --terminal cat | cat",
            "run: the terminal is lent to one program; run it without |; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        (
            "cat | run --terminal cat",
            "run: the terminal is lent to one program; run it without |; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        (
            "run --terminal cat &",
            "run: the terminal is lent in the foreground; run the program without &; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        (
            "run --terminal cat < etc/motd",
            "run: the terminal is lent to a program that reads from it; run it without <; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        ("run --quota 16K hello", "run: there is not enough memory\n"),
        ("ps | run", "run: the program is missing; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n"),
        ("run --core", "run: the core is missing; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n"),
        (
            "run --core x hello",
            "run: x is no core, such as 2, nor any; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        (
            "run --core +1 hello",
            "run: +1 is no core, such as 2, nor any; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        ("run --with", "run: the powers are missing; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n"),
        (
            "run --with memory,root hello",
            "run: root is no power, such as memory; there are power, cores, processes, memory, files, names, terminal, \
             reserve, counters; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        (
            "run --priority 256 hello",
            "run: 256 is no priority, such as 100; the highest is 255; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        (
            "run --ceiling +1 hello",
            "run: +1 is no priority, such as 100; the highest is 255; usage: run [OPTION...] PROGRAM [ARGUMENT...] [&]\n",
        ),
        ("run --core 9 hello", "run: the machine has no such core\n"),
        ("run --core 1 xyzzy", "run: no command or program xyzzy; help lists the commands, ls bin the programs\n"),
        ("run --core 1 hello > tmp/", "tmp/: this is a directory\n"),
        ("run --core 1 --quota 1K hello", "run: there is not enough memory\n"),
        ("kill 1:9", "kill: no process 1:9; ps lists them\n"),
        ("kill 1:x", "kill: no process 1:x; ps lists them\n"),
        ("kill 4294967296", "kill: no process 4294967296; ps lists them\n"),
        ("hello | xyzzy", "no command or program xyzzy; help lists the commands, ls bin the programs\n"),
        ("hello > bin/hello", "bin/hello: read only\n"),
        ("hello > tmp", "tmp: this is a directory\n"),
        ("cat < nothing", "nothing: there is no such file or directory\n"),
        ("hello | exit", "exit: it needs the shell for itself, without |; usage: exit\n"),
        (
            "hello | time hello",
            "time: it stands at the beginning, before everything that is timed; usage: time COMMAND [ARGUMENT...] \
             [| PROGRAM...]\n",
        ),
        ("fg", "fg: there is no job\n"),
        ("fg %1", "fg: no job %1; jobs lists them\n"),
        ("fg 1", "fg: a job is written %1, not 1; usage: fg [%JOB]\n"),
        ("bg %x", "bg: no job %x; jobs lists them\n"),
        ("kill %7", "kill: no job %7; jobs lists them\n"),
        ("killall xyzzy", "killall: no process xyzzy; ps lists them\n"),
        ("killall", "killall: the name is missing; usage: killall NAME\n"),
        ("mkdir", "mkdir: the directory is missing; usage: mkdir DIRECTORY...\n"),
        ("mkdir tmp", "mkdir: tmp: something lies there already\n"),
        ("rm bin/hello", "rm: bin/hello: read only\n"),
        ("rm nothing", "rm: nothing: there is no such file or directory\n"),
        ("mv one", "mv: it takes two paths; usage: mv FROM TO\n"),
        ("mv nothing tmp", "mv: nothing to tmp/nothing: there is no such file or directory\n"),
        ("top -n", "top: a number is missing after -n; usage: top [-d SECONDS] [-n COUNT]\n"),
        ("top -n 0", "top: COUNT is a number from 1 on, not 0; usage: top [-d SECONDS] [-n COUNT]\n"),
        ("top -d 0", "top: SECONDS is a number from 0.1 to 86400, not 0; usage: top [-d SECONDS] [-n COUNT]\n"),
        ("top -d 1e3", "top: SECONDS is a number from 0.1 to 86400, not 1e3; usage: top [-d SECONDS] [-n COUNT]\n"),
        ("top -x", "top: there is no option -x; usage: top [-d SECONDS] [-n COUNT]\n"),
        ("top 3", "top: it takes only options, but 3 was given; usage: top [-d SECONDS] [-n COUNT]\n"),
        ("help hlep", "help: no command hlep; did you mean help?\n"),
        ("help timer", "help: timer is a program, not a command; timer runs it\n"),
        ("kill shell", "kill: nothing is behind the first shell; poweroff switches the machine off\n"),
        ("help one two", "help: one argument is enough, but two follows; usage: help [COMMAND]\n"),
        ("echo 'a", "the closing ' is missing; write \\' for the character itself\n"),
        ("echo a &", "echo: only programs can run in the background; usage: echo [WORD...]\n"),
        ("uptime now", "uptime: it takes no argument, but now was given; usage: uptime\n"),
        ("ps -x", "ps: there is no option -x; usage: ps [-a] [--here] [--flat] [--short] [PID|NAME]\n"),
        ("kill", "kill: the process is missing; usage: kill PID|NAME|%JOB...\n"),
        ("kill 99", "kill: no process 99; ps lists them\n"),
        ("kill consoel", "kill: no process consoel; did you mean console?\n"),
        ("kill xyzzy", "kill: no process xyzzy; ps lists them\n"),
        ("wait", "wait: the process is missing; usage: wait PID|NAME|%JOB\n"),
        ("wait shell", "wait: the shell cannot wait for itself\n"),
        ("suspend shell", "suspend: nobody could resume the shell\n"),
        ("suspend 5", "suspend: the shell could not be seen or heard without the console\n"),
        ("resume mem", "resume: process 2 is not suspended\n"),
        ("caps", "caps: the process is missing; usage: caps [--count] PID|NAME\n"),
        ("ls nowhere", "ls: nowhere: there is no such file or directory\n"),
        ("ls bin/helo", "ls: bin/helo: there is no such file or directory; did you mean bin/hello?\n"),
        ("time", "time: the command is missing; usage: time COMMAND [ARGUMENT...] [| PROGRAM...]\n"),
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
    check("echo a;echo b ; echo c;", "a\nb\nc\n");
    check("ls", "bin/\netc/\nshare/\ntmp/\n");
    check("ls /", "bin/\netc/\nshare/\ntmp/\n");
    check("ls bin", "cat\ncrash\nfail\ngrep\nhello\nkill\ntimer\nwarn\nyes\n");
    check("ls ./share/", "no-end.txt\numlauts.txt\n");
    check("ls etc/motd", "etc/motd\n");
    check("ls -l share", "BYTES  NAME\n   23  no-end.txt\n   29  umlauts.txt\n");
    check("ls -l", "BYTES  NAME\n    -  bin/\n    -  etc/\n    -  share/\n    -  tmp/\n");
    check("mkdir tmp/a; echo x > tmp/a/b; mv tmp/a/b tmp; ls tmp; rm tmp/b; ls tmp", "a/\nb\na/\n");
}

#[test]
fn the_system_is_shown() {
    check(
        "ps",
        "PID  STATE    PRIORITY   MEMORY      TIME  NAME\n\
         \x20 1  running       101        -  1.000 ms  init\n\
         \x20 2  running       102  300 KiB  2.000 ms    mem\n\
         \x20 5  running       105        -  5.000 ms    console\n\
         \x20 7  running       107  1.2 MiB  7.000 ms    shell\n",
    );
    check(
        "ps --flat shell",
        "PID  PARENT  STATE    PRIORITY   MEMORY      TIME  NAME\n\
         \x20 7       1  running       107  1.2 MiB  7.000 ms  shell\n",
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
        "SLOT  KIND             RIGHTS   SIZE                 BADGE      OBJECT  USE\n\
         \x20  1  capability node  rwgc    128 B                     -           -  own CSpace\n\
         \x20  8  endpoint         rwgc     32 B                     9           -  memory server\n\
         \x20  9  endpoint         rwgc     32 B       9 power, memory           -  name server\n\
         \x20 12  kernel           rwgc        -          9 all powers           -  kernel\n\
         \x20 16  interrupt        -w--        -                     -          33  given by the parent\n\
         \x20 48  frame            r---    4 KiB                     -  0x41234000  file server\n\
         \x20300  frame            ----    2 MiB                     -  0x41200000\n\
         \x20301  endpoint         rwgc     32 B  18446744073709551615           -\n",
    );
    check(
        "caps --count 7",
        "COUNT  KIND\n    1  capability node\n    2  frame\n    3  endpoint\n    1  interrupt\n    1  kernel\n",
    );
    check("date", "2026-01-01 00:00:03\n");
    check("date now", "date: it takes no argument, but now was given; usage: date\n");
    check("uptime", "up 5.000 s, 66.6 % idle\n");
    check(
        "reservations",
        "ID   PID   SHARE    BUDGET     PERIOD  DEADLINE  RESPONSE  PRIORITY     USED  PROCESS\n\
         \x203     5  10.0 %  1.000 ms  10.000 ms  5.000 ms  1.260 ms       155  2.500 s  console\n\
         \x208  1:77   2.5 %  1.000 ms  10.000 ms  5.000 ms  1.260 ms       142  2.500 s  -\n\
         12.5 % of the processor reserved\n",
    );
    check("reservations all", "reservations: it takes no argument, but all was given; usage: reservations\n");
    let kernel = output(&["kernel"]);
    assert!(kernel.starts_with("deepest use of a kernel stack      1,000 bytes\npreemption points "), "{kernel}");
    assert!(kernel.contains("\nidle                               3.333 s\n"), "{kernel}");
    assert!(
        kernel.ends_with("interrupts during others           1,009\ninstructions                       1,010\n"),
        "{kernel}"
    );
    check(
        "kernel irq-off",
        "   LONGEST         COUNT   MEAN  PATH\n     1,890         3,000    100  Mint\n  at 0xfffffff040080400\n\
         \x20    1,890         3,000    100  idle\n  at 0xfffffff040080400\n",
    );
    check("kernel xyzzy", "kernel: it knows irq-off, but not xyzzy; usage: kernel [irq-off]\n");
}

#[test]
fn a_date_that_nobody_knows_or_that_is_none_is_not_shown() {
    let mut system = Fake::new("init");
    system.wall_clock = None;
    assert_eq!(output_of(&mut system, &["date"]), "date: nobody knows the date\n");
    system.wall_clock = Some(Duration::from_secs(u64::MAX));
    assert_eq!(output_of(&mut system, &["date"]), "date: 18446744073709551615 seconds since 1970 are no date\n");
    system.wall_clock = Some(Duration::from_secs(1_835_481_599));
    assert_eq!(output_of(&mut system, &["date"]), "2028-02-29 23:59:59\n");
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
fn processes_are_found_by_name_and_number() {
    let mut system = Fake::new("init");
    let output = output_of(&mut system, &["timer &", "timer &", "kill timer", "suspend 8", "suspend 8", "ps --short"]);
    let expected = "[1] timer (process 8)\n[2] timer (process 9)\nkill: several processes are called timer; give one of 8, 9\n\
                    suspend: process 8 is suspended already\n\
                    STATE      NAME\nrunning    init\nrunning    mem\nrunning    console\nrunning    shell\n\
                    suspended  timer\nrunning    timer\n";
    assert_eq!(output, expected);
    let output = output_of(&mut system, &["resume 8", "kill 8 9", "kill 8", "kill timer", "ps -a --short", "wait 9"]);
    let expected = "kill: process 8 has been killed\nkill: no process timer; ps lists them\n\
                    STATE    NAME\nrunning  init\nrunning  mem\nrunning  console\nrunning  shell\n\
                    killed   timer\nkilled   timer\nprocess 9 (timer) was killed\n";
    assert_eq!(output, expected);
    assert_eq!(system.processes[5].state, State::Killed);
}

#[test]
fn processes_of_other_cores_are_like_those_of_the_own() {
    let mut system = Fake::new("init");
    let lines = [
        "run --core 1 timer &",
        "run --core 2 timer 3 &",
        "timer &",
        "ps --flat timer",
        "ps shell",
        "ps --here shell",
        "jobs",
    ];
    let expected = "[1] run --core 1 timer (process 1:1)\n[2] run --core 2 timer 3 (process 2:1)\n[3] timer (process 8)\n\
                    PID  PARENT  STATE    PRIORITY  MEMORY      TIME  NAME\n\
                    \x20 8       7  running       108       -  8.000 ms  timer\n\
                    PID  STATE    PRIORITY   MEMORY        TIME  NAME\n\
                    \x20 7  running       107  1.2 MiB    7.000 ms  shell\n\
                    \x20 8  running       108        -    8.000 ms    timer\n\
                    1:1  running       397    8 KiB  297.000 ms    timer\n\
                    2:1  running       693    8 KiB  593.000 ms    timer\n\
                    PID  STATE    PRIORITY   MEMORY      TIME  NAME\n\
                    \x20 7  running       107  1.2 MiB  7.000 ms  shell\n\
                    \x20 8  running       108        -  8.000 ms    timer\n\
                    JOB  STATE    PROCESSES  COMMAND\n%1   running  1:1        run --core 1 timer\n\
                    %2   running  2:1        run --core 2 timer 3\n%3   running  8          timer\n";
    assert_eq!(output_of(&mut system, &lines), expected);
    let lines = [
        "suspend 1:1",
        "suspend 1:timer",
        "resume 1:1",
        "resume 1:1",
        "kill 1:1",
        "kill 1:1",
        "kill 0:8",
        "kill timer",
    ];
    let expected = "suspend: process 1:1 is suspended already\nresume: process 1:1 is not suspended\n\
                    kill: process 1:1 has been killed\n";
    assert_eq!(output_of(&mut system, &lines), expected);
    // The name means the process on core 2 when there is none here any more.
    assert_eq!(system.killed, [1 << 32 | 1, 8, 2 << 32 | 1]);
}

#[test]
fn killall_ends_those_of_all_cores_or_of_one() {
    let mut system = Fake::new("init");
    let start = ["timer &", "run --core 1 timer &", "run --core 1 timer &", "run --core 2 timer &"];
    output_of(&mut system, &start);
    assert_eq!(
        output_of(&mut system, &["kill 1:timer", "killall 1:timer", "killall 1:timer"]),
        "\
        kill: several processes are called 1:timer; give one of 1:1, 1:2\nkillall: no process 1:timer; ps lists them\n"
    );
    assert_eq!(system.killed, [1 << 32 | 1, 1 << 32 | 2]);
    assert_eq!(
        output_of(&mut system, &["killall timer", "killall timer"]),
        "killall: no process timer; ps lists them\n"
    );
    assert_eq!(system.killed[2..], [8, 2 << 32 | 1]);
}

#[test]
fn programs_run_where_the_fewest_do() {
    let mut system = Fake::new("init");
    assert_eq!(
        output_of(&mut system, &["run --core any timer &", "run --core 0 timer > tmp/x &"]),
        "\
        [1] run --core any timer (process 8)\n[2] run --core 0 timer > tmp/x (process 9)\n"
    );
    system.quiet = 2;
    assert_eq!(output_of(&mut system, &["run --core any timer &"]), "[1] run --core any timer (process 2:1)\n");
}

#[test]
fn a_program_of_another_core_has_the_terminal_while_it_is_waited_for() {
    let mut system = Fake::new("init");
    assert_eq!(output_of(&mut system, &["run --core 1 fail"]), "hello, no line feed\n[exited with 3]\n");
    system.key = Some(Waited::EndedEarly(vec![Some(End::Killed)]));
    assert_eq!(output_of(&mut system, &["run --core 1 timer; hello"]), "[killed]\n");
    let remote = 1 << 32 | 2;
    assert_eq!(system.foreground, (vec![remote], remote, Some(OnKey::Handle)));
    system.key = Some(Waited::Suspended);
    let output = output_of(&mut system, &["run --core 1 cat", "bg", "wait 1:3"]);
    let expected = "[1] run --core 1 cat: suspended; fg %1 or bg %1 lets it go on\n[1] run --core 1 cat\n\
                    process 1:3 (cat) exited with 0\n";
    assert_eq!(output, expected);
}

#[test]
fn poweroff_has_a_status() {
    let mut system = Fake::new("init");
    output_of(&mut system, &["poweroff", "poweroff 3", "poweroff -1", "poweroff x"]);
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
    system.terminal = Terminal::Others;
    system.types("echo a\n");
    system.reads(Input::Interrupted);
    // The terminal, not the shell, echoes what is typed.
    assert_eq!(session(&mut system, "echo b\n"), "tench> a\ntench> \ntench> b\ntench> ");
}

#[test]
fn lines_of_a_file_are_carried_out_without_prompts() {
    let mut system = Fake::new("shell");
    system.terminal = Terminal::None;
    assert_eq!(session(&mut system, "echo a\nhello\n\necho c"), "a\nhello, no line feed\nc\n");
}

#[test]
fn powers_are_passed_on_by_words_and_not_otherwise() {
    let mut system = Fake::new("init");
    let lines =
        ["hello", "run hello", "run --with memory,power hello", "run --with files --with files,names hello | cat"];
    output_of(&mut system, &lines);
    let given: Vec<Powers> = system.settings.iter().map(|settings| settings.powers).collect();
    let none = Powers::empty();
    assert_eq!(given, [none, none, Powers::MEMORY | Powers::POWER, Powers::FILES | Powers::NAMES, none]);
}

#[test]
fn a_shell_passes_on_what_it_has() {
    let mut system = Fake::new("init");
    system.powers = Powers::MEMORY | Powers::FILES;
    let lines = ["run --with memory hello", "run --with power,memory,names hello", "hello | run --with cores cat"];
    let refused = "hello, no line feedrun: this shell cannot pass on power, names; it has memory, files\n\
                   run: this shell cannot pass on cores; it has memory, files\n";
    assert_eq!(output_of(&mut system, &lines), refused);
    system.powers = Powers::empty();
    let none = "run: this shell cannot pass on memory; it has no powers\n";
    assert_eq!(output_of(&mut system, &["run --with memory hello"]), none);
    let count = system.processes.iter().filter(|process| process.state == State::Preparing).count();
    assert_eq!(count, 0, "what was prepared is given up");
}

#[test]
fn the_priority_of_a_program_can_be_given() {
    let mut system = Fake::new("init");
    output_of(
        &mut system,
        &["run --priority 120 hello", "run --ceiling 0 --priority 0 hello", "run --ceiling 130 hello"],
    );
    let said: Vec<_> = system.settings.iter().map(|settings| (settings.priority, settings.ceiling)).collect();
    assert_eq!(said, [(Some(120), None), (Some(0), Some(0)), (None, Some(130))]);
}

fn program(name: &'static str, priority: u8, ceiling: u8) -> Program<'static> {
    Program {
        name,
        path: name,
        priority,
        ceiling,
        stack_size: 0,
        quota: NO_QUOTA,
        start: false,
        cores: Cores::First,
        server: false,
        restart: 0,
        restart_delay: 0,
        keep: 0,
        keep_nodes: 0,
        arguments: Strings::default(),
        environment: Strings::default(),
        powers: 0,
        capabilities: Capabilities::default(),
    }
}

#[test]
fn the_description_speaks_of_programs_that_people_run() {
    let cyclic =
        Program { stack_size: 8192, quota: 4096, arguments: Strings::new(b"-q\0"), ..program("cyclic", 110, 180) };
    let shell = Program { start: true, ..program("shell", 120, 180) };
    let clock = Program { server: true, ..program("clock", 210, 210) };
    let bytes = Description::write(&[cyclic, shell, clock], Shares::default());
    let system = Description::parse(&bytes).unwrap();
    assert_eq!(effective_settings::find(&system, "cyclic"), Some(cyclic));
    for other in ["shell", "clock", "hello", "bin/cyclic", "/tmp/cyclic", "./cyclic"] {
        assert_eq!(effective_settings::find(&system, other), None, "{other}");
    }
    let effective = effective_settings::resolve(Some(cyclic), Settings::default(), 255);
    assert_eq!(
        (effective.stack, effective.quota, effective.arguments, effective.is_usual()),
        (8192, Some(4096), &b"-q\0"[..], false)
    );
    let asked = Settings { quota: Some(9), slots: Some(70_000), ..Settings::default() };
    let effective = effective_settings::resolve(Some(cyclic), asked, 255);
    assert_eq!((effective.quota, effective.slots), (Some(9), Some(70_000)), "what a person says counts");
    assert!(effective_settings::resolve(None, Settings::default(), 255).is_usual());
}

#[test]
fn a_described_priority_is_capped_at_the_shells_ceiling_and_a_typed_one_is_passed_on_unchanged() {
    let cyclic = Some(program("cyclic", 110, 180));
    let cases = [
        (None, (None, None), 255, (100, 100)),
        (None, (None, None), 60, (60, 60)),
        (cyclic, (None, None), 255, (110, 180)),
        (cyclic, (None, None), 150, (110, 150)),
        (cyclic, (None, None), 105, (105, 105)),
        (cyclic, (Some(50), None), 150, (50, 150)),
        (cyclic, (None, Some(105)), 150, (105, 105)),
        (None, (Some(120), None), 150, (120, 120)),
        (None, (None, Some(120)), 150, (100, 120)),
        (None, (None, Some(40)), 150, (40, 40)),
        // The process server refuses this, by name.
        (None, (Some(200), None), 150, (200, 200)),
        (None, (None, Some(200)), 150, (100, 200)),
        (None, (Some(90), Some(80)), 150, (90, 80)),
    ];
    for (said, (priority, ceiling), limit, expected) in cases {
        let effective = effective_settings::resolve(said, Settings { priority, ceiling, ..Settings::default() }, limit);
        assert_eq!((effective.priority, effective.ceiling), expected, "{priority:?} {ceiling:?} below {limit}");
    }
}
