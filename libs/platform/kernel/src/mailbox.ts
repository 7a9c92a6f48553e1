import { domainToASCII } from 'node:url';

/**
 * Returns the mailbox that an e-mail address leads to, for counting mails to it: capital letters, tags (`ann+shop@…`) and
 * the spelling of the domain make no other mailbox.
 */
export function parseMailbox(address: string): string {
  const [, local = '', domain = ''] = /^([^]*)@([^@]*)$/.exec(address.normalize('NFKC')) ?? [
    '',
    address,
    '',
  ];
  const [name = ''] = local.toLowerCase().split('+', 1);
  return `${name}@${domainToASCII(domain) || domain.toLowerCase()}`;
}
