# Verifies Inkpad's webhooks in Ruby. In Rails the body is request.raw_post, in Sinatra request.body.read.
require 'openssl'

# Takes a secret (whsec_…) or a public key (whpk_…).
def verify(secret, id, timestamp, signatures, body)
  return false unless timestamp.match?(/\A\d+\z/) && (Time.now.to_i - timestamp.to_i).abs <= 300

  kind, encoded_key = secret.split('_', 2)
  key = encoded_key.unpack1('m0')
  signed = "#{id}.#{timestamp}.".b + body.b
  signatures.split.any? do |one|
    version, encoded = one.split(',', 2)
    signature = encoded.to_s.unpack1('m')
    if kind == 'whpk'
      # What precedes the 32 bytes of an Ed25519 key in DER (RFC 8410).
      der = ['302a300506032b6570032100'].pack('H*') + key
      version == 'v1a' && OpenSSL::PKey.read(der).verify(nil, signature, signed)
    else
      version == 'v1' && OpenSSL.secure_compare(OpenSSL::HMAC.digest('SHA256', key, signed), signature)
    end
  end
end
