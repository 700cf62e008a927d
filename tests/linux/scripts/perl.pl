# Perl, as Debian's package perl-base has it.
use strict;
use warnings;
use POSIX qw(floor fmod strftime :sys_wait_h);
use List::Util qw(sum max first reduce shuffle);
use Scalar::Util qw(blessed weaken);

$| = 1;
sub title { print "== @_\n" }

title('closures');
sub counter { my $count = shift; return { up => sub { return ++$count }, get => sub { $count } } }
my ($one, $other) = (counter(5), counter(10));
$one->{up}->() for 1 .. 3;
print $one->{get}->(), ' ', $other->{up}->(), "\n";
my @subs = map { my $n = $_; sub { $n * shift } } 1 .. 4;
print join(',', map { $_->(10) } @subs), "\n";
my $fact; $fact = sub { my $n = shift; $n < 2 ? 1 : $n * $fact->($n - 1) };
printf "%d %.6g\n", $fact->(15), $fact->(30);

title('regular expressions');
my $text = "2024-02-29 error: disk /dev/sda1 is 97% full; 2024-03-01 ok";
print "$1/$2/$3\n" while $text =~ /(\d{4})-(\d\d)-(\d\d)/g;
(my $copy = $text) =~ s/(\w+)%/<$1 percent>/;
print "$copy\n";
print join('|', split /\s*[:;]\s*/, $text), "\n";
print "$+{level} on $+{device}\n" if $text =~ /(?<level>error).*?(?<device>\/dev\/\w+)/;
print join(',', 'aXbXXc' =~ /[a-z](?=X)/g), ' ', 'foobar' =~ /^(?!bar)foo(?<=foo)(\w+)$/ ? $1 : 'none', "\n";
(my $nested = 'f(a(b)c)(d)') =~ s/(\((?:[^()]++|(?1))*\))/[]/g;
print "$nested ", ucfirst(lc 'PERL'), ' ', ($text =~ tr/0-9//), ' ', scalar reverse('abc'), "\n";
print join(' ', map { sprintf '%s=%s', $_, { a => 1, b => 2 }->{$_} } sort qw(b a)), "\n";

title('lists and hashes');
my %count; $count{length $_}++ for qw(a bb cc ddd eee fff);
print join(' ', map { "$_:$count{$_}" } sort { $count{$b} <=> $count{$a} } keys %count), "\n";
my @table = ([3, 'c'], [1, 'b'], [1, 'a']);
print join(' ', map { "@$_" } sort { $a->[0] <=> $b->[0] or $a->[1] cmp $b->[1] } @table), "\n";
print sum(1 .. 100), ' ', max(3, 9, 4), ' ', (first { $_ > 4 } 1 .. 9), ' ', (reduce { $a * $b } 1 .. 6), "\n";
my @list = (1 .. 10); splice @list, 2, 3, 'x'; print "@list[0 .. 4] $#list @{[grep { /\d/ && $_ % 2 } @list]}\n";
my $deep = { list => [1, { x => [7] }] }; print $deep->{list}[1]{x}[0], ' ', exists $deep->{none} ? 1 : 0, "\n";
my @sorted = sort { $a <=> $b } map { ($_ * 7919) % 10007 } 1 .. 10000; print "@sorted[0, 1, 5000, 9999]\n";

title('numbers and bytes');
printf "%05.2f|%-6s|%+d|%x|%o|%b|%e|%s\n", 3.14159, 'ab', 5, 255, 8, 5, 12345.678, 1e21;
print 7 % -3, ' ', -7 / 2, ' ', int(-3.7), ' ', 2 ** 40, ' ', 0x1f | 0b1000, ' ', 9223372036854775807 + 0, ' ',
    floor(-1.5), ' ', fmod(7, 3), "\n";
print unpack('H*', pack('NnCa4w', 1, 2, 3, 'ab', 300)), ' ', join(',', unpack('(A2)*', 'aabbcc')), ' ', unpack('%32C*',
    'sum'), "\n";
print join(' ', unpack 'l< s> q d< f> Z*', pack 'l< s> q d< f> Z*', -5, -6, -7, 1.5, 2.25, 'end'), ' ', vec('abc', 1,
    8), "\n";
print strftime('%Y-%m-%d %H:%M:%S', gmtime 86400 * 365), ' ', scalar(gmtime 0), "\n";
print join(',', map { ord } split //, "\x{e9}\x{263a}"), ' ', length("\x{263a}"), ' ', sprintf('%vd', '1.22.333'), "\n";

title('objects');
package Animal { sub new { my ($class, %of) = @_; return bless {%of}, $class } sub speak { my $self = shift;
    return "$self->{name} says " . $self->sound } sub sound { '...' } sub DESTROY { print "gone: $_[0]{name}\n" } }
package Dog { our @ISA = 'Animal'; sub sound { 'woof' } sub speak { my $self = shift;
    return $self->SUPER::speak . '!' } }
{ my $dog = Dog->new(name => 'Rex'); print $dog->speak, ' ', blessed($dog), ' ', $dog->isa('Animal'), ' ',
    Dog->can('fly') ? 1 : 0, "\n" }
eval { die { code => 42 } }; print "caught $@->{code}\n";
eval { my $x = 1; my $y = $x / 0; }; print $@ =~ /division by zero/ ? "division\n" : $@;
local $@; eval { Animal->missing }; print $@ =~ /(Can't locate object method "\w+")/, "\n";

title('files');
my $file = '/tmp/perl.txt';
open my $out, '>', $file or die; print $out "line $_\n" for 1 .. 1000; close $out;
open my $in, '<', $file or die; my $last; $last = $_ while <$in>; print "$. $last"; seek $in, 14, 0;
print scalar <$in>, tell $in, "\n"; close $in;
print -s $file, ' ', -f $file ? 'file' : '', ' ', (-d '/tmp') + 0, ' ', -e '/none' ? 1 : 0, "\n";
open $out, '+<', $file or die; sysseek $out, 5, 0; syswrite $out, 'X'; close $out; open $in, '<', $file;
print scalar <$in>; { local $/; print length <$in>, "\n" } close $in;
rename $file, "$file.2"; chmod 0600, "$file.2"; printf "%o\n", (stat "$file.2")[2] & 07777;
mkdir '/tmp/pd' or die; open(my $touch, '>', "/tmp/pd/$_") for qw(c a b); opendir my $dir, '/tmp/pd';
print join(' ', sort grep { !/^\./ } readdir $dir), ' ', join(' ', glob '/tmp/pd/[ab]'), "\n";
symlink 'a', '/tmp/pd/l'; print readlink('/tmp/pd/l'), ' ', unlink(glob '/tmp/pd/*'), ' ', rmdir('/tmp/pd'), "\n";
open(my $none, '<', '/none') or print "$!\n"; print $!{ENOENT} ? "ENOENT\n" : "other\n";
my $here = <<"A" . <<'B'; print $here;
in one @{[1 + 1]}
A
$other
B
print while <DATA>;

title('processes');
pipe my $reader, my $writer; my $pid = fork // die;
if (!$pid) { close $reader; print $writer "from the child\n"; close $writer; POSIX::_exit 3 }
close $writer; print scalar <$reader>; waitpid $pid, 0; print $? >> 8, "\n";
print `echo output of a command; exit 5`, $? >> 8, "\n"; system('exit 6;'); print $? >> 8, "\n";
print system('true'), "\n";
open my $command, '-|', 'echo', 'a', 'list' or die; print <$command>; close $command; open $command, '|-', 'cat' or die;
print $command "to cat\n"; close $command;
my @children = map { my $n = $_; my $child = fork; POSIX::_exit $n unless $child; $child } 1 .. 5; my $sum = 0;
for (@children) { waitpid $_, 0; $sum += $? >> 8 } print "$sum\n"; print waitpid(-1, WNOHANG), "\n";
$pid = fork; if (!$pid) { sleep 100; POSIX::_exit 0 } kill 'TERM', $pid; waitpid $pid, 0; print $? & 127, "\n";
$pid = open my $child, '-|' // die; if (!$pid) { print "implicit fork\n"; POSIX::_exit 0 } print <$child>; close $child;

title('signals');
{ local $SIG{USR1} = sub { print "handler of $_[0]\n" }; kill 'USR1', $$; }
my $alarm = eval { local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; select undef, undef, undef, 5; 'no alarm' };
print $alarm // $@;
{ local $SIG{CHLD} = sub { 1 while waitpid(-1, WNOHANG) > 0 and print "child has ended\n" }; fork or POSIX::_exit 0;
    select undef, undef, undef, 0.3 }
{ local $SIG{PIPE} = 'IGNORE'; pipe my $r, my $w; close $r; syswrite($w, 'x') // print "$!\n" }
{ local $SIG{__WARN__} = sub { print "warning: $_[0]" }; my $u; my $v = "$u" . 'x'; warn "own\n" }
my $mask = POSIX::SigSet->new(POSIX::SIGUSR2); POSIX::sigprocmask(POSIX::SIG_BLOCK, $mask);
local $SIG{USR2} = sub { print "usr2\n" }; kill 'USR2', $$; print "blocked\n";
POSIX::sigprocmask(POSIX::SIG_UNBLOCK, $mask); print "unblocked\n";
END { print "the end\n"; $? = 9 }
__DATA__
data of the script
