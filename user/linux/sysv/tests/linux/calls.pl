# Makes the calls of each line and writes their results: a number, or the negative number of the error, and then all
# buffers as they are afterwards. A line is the number of a call with arguments, and "b" with hexadecimal digits is a
# buffer. The calls of a line that begins with "child" are made by a child, which ends after them; its number comes
# first.
use strict;
use warnings;
use POSIX ();
$| = 1;

sub make {
    my ($number, @words) = split ' ', shift;
    my @arguments = map { /^b(.*)/ ? pack('H*', $1) : $_ + 0 } @words;
    my $result = syscall($number + 0, @arguments);
    my $line = $result == -1 ? -($! + 0) : $result;
    for my $index (0 .. $#words) {
        $line .= ' ' . unpack('H*', $arguments[$index]) if $words[$index] =~ /^b/;
    }
    print "$line\n";
}

while (my $line = <STDIN>) {
    chomp $line;
    if ($line !~ s/^child //) {
        make($line);
        next;
    }
    my $child = fork();
    die "no child: $!" unless defined $child;
    if ($child == 0) {
        print "$$\n";
        make($_) for split ';', $line;
        POSIX::_exit(0);
    }
    waitpid($child, 0);
}
