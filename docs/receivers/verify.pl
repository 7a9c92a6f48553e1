# Verifies Inkpad's webhooks in Perl, with the secret of a subscription (whsec_…).
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256);
use MIME::Base64 qw(decode_base64 encode_base64);

sub verify {
    my ($secret, $id, $timestamp, $signatures, $body) = @_;
    return 0 unless $timestamp =~ /\A\d+\z/ && abs(time - $timestamp) <= 300;
    my $key = decode_base64($secret =~ s/\Awhsec_//r);
    my $expected = 'v1,' . encode_base64(hmac_sha256("$id.$timestamp.$body", $key), '');
    # Compared as HMACs, so that the time it takes says nothing about the signature.
    my $wanted = hmac_sha256($expected, $key);
    return scalar grep { hmac_sha256($_, $key) eq $wanted } split / /, $signatures;
}

1;
