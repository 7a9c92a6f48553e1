# Checks whether a delivery that you saved was signed with a secret, regardless of its age.
# is_signed SECRET ID TIMESTAMP SIGNATURES FILE_WITH_THE_BODY
is_signed() {
  key=$(printf %s "${1#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
  mac=$({ printf '%s.%s.' "$2" "$3"; cat "$5"; } |
    openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)
  case " $4 " in *" v1,$mac "*) return 0 ;; *) return 1 ;; esac
}
