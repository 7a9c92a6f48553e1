import { describe, expect, it } from '@jest/globals';
import ipaddr from 'ipaddr.js';
import {
  isBlockedAddress,
  isBlockedHost,
  isLocalName,
  parseLiteralAddress,
  PUBLIC_ONLY,
  findTargetUrlIssue,
} from './target-address.js';

const NOT_A_URL =
  'must be a URL such as https://example.com/hooks, without spaces, backslashes and "#"';

const strict = (url: string) => findTargetUrlIssue(url, PUBLIC_ONLY)?.message;
const DEVELOPMENT = { ...PUBLIC_ONLY, webhookAllowInsecureTargets: true };
const allowing = (...ranges: string[]) => ({
  ...PUBLIC_ONLY,
  webhookAllowedCidrs: ranges.map((range) => ipaddr.parseCIDR(range)),
});

describe('findTargetUrlIssue', () => {
  it.each([
    'https://127.0.0.1/',
    'https://127.1/',
    'https://127.0.1/',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0x7f.0.0.1/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://0177.1/',
    'https://017700000001/',
    'https://127.0.0.1./',
    'https://127.255.255.254/',
    'https://%31%32%37.0.0.1/',
    'https://１２７.０.０.１/',
    'https://127。0。0。1/',
    'https://①②⑦.0.0.1/',
    'https://0/',
    'https://0.0.0.0/',
    'https://10.0.0.1/',
    'https://012.0.0.1/',
    'https://167772161/',
    'https://100.64.0.1/',
    'https://100.100.100.200/',
    'https://100.127.255.255/',
    'https://169.254.169.254/latest/meta-data/',
    'https://2852039166/',
    'https://0xA9FEA9FE/',
    'https://0xa9.0xfe.0xa9.0xfe/',
    'https://0251.0376.0251.0376/',
    'https://0XA9.254.0251.254/',
    'https://169.254.43518/',
    'https://169.16689662/',
    'https://169.254.169.254.:8443/',
    'https://169。254．169｡254/',
    'https://１６９.２５４.１６９.２５４/',
    'https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/',
    'https://ｌｏｃａｌｈｏｓｔ/',
    'https://172.16.0.1/',
    'https://172.31.255.255/',
    'https://192.0.0.8/',
    'https://192.0.2.1/',
    'https://192.88.99.1/',
    'https://192.168.1.1/',
    'https://192.168.257/',
    'https://198.18.0.1/',
    'https://198.19.255.255/',
    'https://198.51.100.7/',
    'https://203.0.113.9/',
    'https://224.0.0.1/',
    'https://239.255.255.255/',
    'https://240.0.0.1/',
    'https://255.255.255.255/',
    'https://[::]/',
    'https://[::1]/',
    'https://[0:0:0:0:0:0:0:1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[0:0:0:0:0:ffff:a9fe:a9fe]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[::FFFF:A00:1]/',
    'https://[::ffff:0:127.0.0.1]/',
    'https://[::a9fe:a9fe]/',
    'https://[::ffff:100.100.100.200]/',
    'https://[64:ff9b:1:a9fe:a9:fe00::]/',
    'https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/',
    'https://[2001:10::1]/',
    'https://[2001:20::1]/',
    'https://[fe80::5efe:7f00:1]/',
    'https://[::127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[64:ff9b::169.254.169.254]/',
    'https://[64:ff9b:1::a9fe:a9fe]/',
    'https://[100::1]/',
    'https://[2001::1]/',
    'https://[2001:0:a9fe:a9fe::1]/',
    'https://[2001:db8::1]/',
    'https://[2002:7f00:1::]/',
    'https://[2002:a9fe:a9fe::1]/',
    'https://[3fff::1]/',
    'https://[5f00::1]/',
    'https://[fc00::1]/',
    'https://[fd00:ec2::254]/',
    'https://[fe80::1]/',
    'https://[fec0::1]/',
    'https://[ff02::1]/',
    'https://localhost/',
    'https://LOCALHOST/',
    'https://localhost./',
    'https://api.localhost/',
    'https://localhost:8443/',
    'https://168.63.129.16/',
    'https://[::ffff:168.63.129.16]/',
    'https://[64:ff9b::a00:1]/',
    'https://[64:ff9b::6464:64c8]/',
    'https://[64:ff9b::a83f:8110]/',
    'https://[64:ff9b:0:0:1:0:808:808]/',
    'https://[64:ff9b:1::a00:1]/',
    'https://[64:ff9b:1:a00:0:100::]/',
    'https://[64:ff9b:1:a:0:1::]/',
    'https://[64:ff9b:1:7f:0:1::]/',
    'https://[64:ff9b:1:1:7f:0:100:0]/',
    'https://[64:ff9b:1:fffe::a9fe:a9fe]/',
    'https://[64:ff9b:1::]/',
    'https://[::ffff:0:169.254.169.254]/',
    'https://[::ffff:0:192.168.1.1]/',
    'https://[::10.0.0.1]/',
    'https://[2002:a00:1::1]/',
    'https://[2002:c0a8:101:1:2:3:4:5]/',
    'https://[2001:0:808:808::f5ff:fffe]/',
    'https://[2001:0:a00:1:0:0:f7f7:f7f7]/',
    'https://[2606:4700::5efe:a9fe:a9fe]/',
    'https://[2606:4700::200:5efe:a00:1]/',
    'https://[fe80::5efe:808:808]/',
    'https://[fe80::a9fe:a9fe]/',
    'https://[fd20:ce::254]/',
  ])('refuses %s as not publicly reachable', (url) => {
    expect(strict(url)).toBe('must be publicly reachable');
  });

  it.each([
    'https://example.com/hooks?a=1',
    'https://example.com:8443/',
    'https://8.8.8.8/',
    'https://172.32.0.1/',
    'https://100.128.0.1/',
    'https://192.0.1.1/',
    'https://[2606:4700:4700::1111]/',
    'https://[::ffff:8.8.8.8]/',
    'https://localhost.example.com/',
    'https://bücher.example/',
    'https://xn--bcher-kva.example/',
    'https://example.com./',
    'https://127.0.0.1.example.com/',
    'https://10.0.0.1.nip.example/',
    'https://168.63.129.17/',
    'https://[64:ff9b::808:808]/',
    'https://[64:ff9b::8.8.8.8]/',
    'https://[64:ff9b:1::808:808]/',
    'https://[64:ff9b:1:fffe::808:808]/',
    'https://[64:ff9b:1:808:8:800::]/',
    'https://[64:ff9b:1:8:8:808::]/',
    'https://[64:ff9b:1:0:8:808:800:0]/',
    'https://[::ffff:0:8.8.8.8]/',
    'https://[::8.8.8.8]/',
    'https://[2002:808:808::1]/',
    'https://[2001:0:808:808::f7f7:f7f7]/',
    'https://[2606:4700::5efe:808:808]/',
    'https://[2606:4700::200:5efe:808:808]/',
  ])('accepts %s', (url) => {
    expect(strict(url)).toBeUndefined();
  });

  it.each([
    ['http://example.com/', 'must start with https://'],
    ['ftp://example.com/', 'must start with https://'],
    ['https://user:secret@example.com/', 'must not contain credentials'],
    ['https://user@example.com/', 'must not contain credentials'],
    ['https://example.com@169.254.169.254/', 'must not contain credentials'],
    ['https://169.254.169.254%2f@example.com/', 'must not contain credentials'],
    ['https://[fe80::1%eth0]/', NOT_A_URL],
    ['https://[::ffff:127.1]/', NOT_A_URL],
    ['https://0x1ffffffff/', NOT_A_URL],
    ['https://127.0.0.1%00.example.com/', NOT_A_URL],
    ['https://999999999999/', NOT_A_URL],
    ['example.com', NOT_A_URL],
    ['https://', NOT_A_URL],
    ['https://[fe80::1%25eth0]/', NOT_A_URL],
    ['https://256.1.1.1/', NOT_A_URL],
    ['javascript:alert(1)', NOT_A_URL],
    ['https://0xa9fe\ta9fe/', NOT_A_URL],
    ['https:\\\\169.254.169.254\\', NOT_A_URL],
    ['https:169.254.169.254', NOT_A_URL],
    ['https://local\u00adhost/', NOT_A_URL],
    ['https://example.com/a\nb', NOT_A_URL],
    ['https://example.com/#part', NOT_A_URL],
    ['https:example.com', NOT_A_URL],
    ['https:\\\\example.com', NOT_A_URL],
    [`https://example.com/${'ß'.repeat(400)}`, 'must have at most 2048 characters'],
    [`https://example.com/${'a'.repeat(2048)}`, 'must have at most 2048 characters'],
  ])('says what is wrong with %s', (url, error) => {
    expect(strict(url)).toBe(error);
  });

  it('allows http and loopback addresses in development, but no other private addresses', () => {
    for (const url of [
      'http://127.0.0.1:9000/',
      'https://127.8.9.10/',
      'http://localhost:9000/',
      'http://[::1]:9000/',
      'http://example.com/',
    ]) {
      expect([url, findTargetUrlIssue(url, DEVELOPMENT)?.message]).toEqual([url, undefined]);
    }
    for (const url of [
      'http://10.1.2.3/',
      'http://172.16.0.1/',
      'https://192.168.1.1/',
      'http://[fd12::1]/',
      'http://169.254.169.254/',
      'http://168.63.129.16/',
      'http://[fd00:ec2::254]/',
      'http://0.0.0.0/',
    ]) {
      expect([url, findTargetUrlIssue(url, DEVELOPMENT)?.message]).toEqual([
        url,
        'must be publicly reachable',
      ]);
    }
  });
});

describe('the ranges that the operator allows', () => {
  const rules = allowing('10.1.0.0/16', 'fd12::/48', '127.0.0.0/8');

  it.each([
    'https://10.1.2.3/',
    'https://[::ffff:10.1.2.3]/',
    'https://0x0a010203/',
    'https://[fd12::5]/',
    'https://[64:ff9b::10.1.2.3]/',
    'https://[64:ff9b:1::10.1.2.3]/',
    'https://[2002:a01:203::1]/',
    'https://[::10.1.2.3]/',
    'https://[2606:4700::5efe:a01:203]/',
    'https://8.8.8.8/',
  ])('allow %s', (url) => {
    expect(findTargetUrlIssue(url, rules)?.message).toBeUndefined();
  });

  it.each([
    ['https://10.2.0.1/', 'must be publicly reachable'],
    ['https://192.168.1.1/', 'must be publicly reachable'],
    ['https://169.254.169.254/', 'must be publicly reachable'],
    ['https://[fd12:0:1::5]/', 'must be publicly reachable'],
    ['https://[::1]/', 'must be publicly reachable'],
    ['https://127.0.0.1/', 'must be publicly reachable'],
    ['https://localhost:8443/', 'must be publicly reachable'],
    ['https://[64:ff9b::10.2.0.1]/', 'must be publicly reachable'],
    ['https://[fd12:0:1::5efe:a01:203]/', 'must be publicly reachable'],
    ['http://10.1.2.3/', 'must start with https://'],
    ['https://a:b@10.1.2.3/', 'must not contain credentials'],
  ])('do not allow %s', (url, error) => {
    expect(findTargetUrlIssue(url, rules)?.message).toBe(error);
  });

  it.each([
    'https://168.63.129.16/',
    'https://[::ffff:a83f:8110]/',
    'https://169.254.169.254/',
    'https://100.100.100.200/',
    'https://[fd00:ec2::254]/',
    'https://[fd00:ec2::23]/',
    'https://[fd20:ce::254]/',
    'https://[fd00:42::42]/',
    'https://[fd00:a9fe:a9fe::1]/',
    'https://[fe80::a9fe:a9fe]/',
    'https://192.0.0.192/',
    'https://169.254.170.2/',
    'https://0xa9fea9fe/',
    'https://127.0.0.1/',
    'https://127.255.0.9/',
    'https://0.0.0.0/',
    'https://localhost/',
    'https://[::]/',
    'https://[::1]/',
  ])('never allow %s, which is a cloud service or this machine', (url) => {
    const open = allowing('0.0.0.0/0', '::/0', '169.254.169.254/32', '127.0.0.0/8', '::1/128');
    expect(findTargetUrlIssue(url, open)?.message).toBe('must be publicly reachable');
    expect(findTargetUrlIssue('https://10.1.2.3/', open)?.message).toBeUndefined();
  });

  const EMBEDDINGS = [
    ['IPv4-mapped', '::ffff:0:0/96', (hex: string) => `::ffff:${hex}`],
    ['IPv4-compatible', '::/96', (hex: string) => `::${hex}`],
    ['IPv4-translated', '::ffff:0:0:0/96', (hex: string) => `::ffff:0:${hex}`],
    ['NAT64', '64:ff9b::/96', (hex: string) => `64:ff9b::${hex}`],
    ['local-use NAT64, /96', '64:ff9b:1::/48', (hex: string) => `64:ff9b:1:fffe::${hex}`],
    ['local-use NAT64, /48', '64:ff9b:1::/48', (hex: string) => `64:ff9b:1:${layout48(hex)}`],
    ['local-use NAT64, /56', '64:ff9b:1::/48', (hex: string) => `64:ff9b:1:${layout56(hex)}`],
    ['local-use NAT64, /64', '64:ff9b:1::/48', (hex: string) => `64:ff9b:1:${layout64(hex)}`],
    ['6to4', '2002::/16', (hex: string) => `2002:${hex}::1`],
    ['Teredo server', '2001::/32', (hex: string) => `2001:0:${hex}:0:0:f7f7:f7f7`],
    ['Teredo client', '2001::/32', (hex: string) => `2001:0:808:808:0:0:${invert(hex)}`],
    ['ISATAP', 'fd12::/16', (hex: string) => `fd12::5efe:${hex}`],
    ['ISATAP, globally unique', 'fd12::/16', (hex: string) => `fd12::200:5efe:${hex}`],
  ] as const;
  const hex8 = (hex: string) =>
    hex
      .split(':')
      .map((part) => part.padStart(4, '0'))
      .join('');
  const toGroups = (digits: string) => (digits.match(/.{4}/g) ?? []).join(':');
  const layout48 = (hex: string) =>
    toGroups(`${hex8(hex).slice(0, 4)}00${hex8(hex).slice(4)}${'0'.repeat(10)}`);
  const layout56 = (hex: string) =>
    toGroups(`12${hex8(hex).slice(0, 2)}00${hex8(hex).slice(2)}${'0'.repeat(8)}`);
  const layout64 = (hex: string) => toGroups(`123400${hex8(hex)}${'0'.repeat(6)}`);
  const invert = (hex: string) =>
    toGroups((0xffffffff - Number.parseInt(hex8(hex), 16)).toString(16).padStart(8, '0'));

  it.each(EMBEDDINGS)(
    'never allow a loopback or metadata address embedded as %s in %s',
    (_what, range, embed) => {
      const open = allowing(range, '0.0.0.0/0', '::/0');
      for (const hex of [
        '7f00:1',
        '7f01:203',
        'a9fe:a9fe',
        'a9fe:aa02',
        '6464:64c8',
        'a83f:8110',
      ]) {
        const address = embed(hex);
        expect([address, isBlockedAddress(address, allowing(range))]).toEqual([address, true]);
        expect([address, isBlockedAddress(address, open)]).toEqual([address, true]);
      }
      expect(isBlockedAddress(embed('808:808'), allowing(range))).toBe(false);
      expect(isBlockedAddress(embed('a01:203'), allowing('10.1.0.0/16', 'fd12::/16'))).toBe(false);
      expect(isBlockedAddress(embed('a01:203'), PUBLIC_ONLY)).toBe(true);
    },
  );

  it('do not allow private addresses behind a translator', () => {
    const open = allowing('64:ff9b::/96', '64:ff9b:1::/48', '2002::/16');
    for (const url of ['https://[64:ff9b::10.0.0.1]/', 'https://[2002:a00:1::1]/']) {
      expect(findTargetUrlIssue(url, open)?.message).toBe('must be publicly reachable');
    }
    expect(findTargetUrlIssue('https://[64:ff9b::8.8.8.8]/', open)?.message).toBeUndefined();
  });

  it('do not allow delivery over http', () => {
    expect(isBlockedHost(new URL('http://10.1.2.3'), rules)).toBe(true);
    expect(isBlockedHost(new URL('https://10.1.2.3'), rules)).toBe(false);
    expect(isBlockedHost(new URL('http://example.com'), DEVELOPMENT)).toBe(false);
  });
});

describe('a name that leads nowhere on the public internet', () => {
  const names = [
    'intranet',
    'INTRANET',
    'intranet.',
    'postgres:5432',
    'printer.local',
    'printer.LOCAL.',
    'hooks.internal',
    'metadata.google.internal',
    'host.docker.internal',
    'localhost.localdomain',
    'router.lan',
    'nas.home',
    'nas.home.arpa',
    'wiki.corp',
    'wiki.intranet',
    'db.private',
    'api.default.svc',
    'api.default.svc.cluster.local',
    'ｉｎｔｒａｎｅｔ',
    'hooks。internal',
    'hooks.ⓘnternal',
    'hooks%2Einternal',
  ];

  it.each(names)('is refused: %s', (name) => {
    expect(strict(`https://${name}/`)).toBe('must be publicly reachable');
  });

  it.each(names)('is accepted where receivers inside are allowed: %s', (name) => {
    expect(
      findTargetUrlIssue(`https://${name}/`, allowing('10.1.0.0/16'))?.message,
    ).toBeUndefined();
    expect(findTargetUrlIssue(`http://${name}/`, DEVELOPMENT)?.message).toBeUndefined();
  });

  it.each(['internal.example', 'local.example', 'intranet.example.com', 'xn--intrnet-cxa.example'])(
    'is none of %s',
    (name) => expect(strict(`https://${name}/`)).toBeUndefined(),
  );
});

describe('names that the proxy resolves', () => {
  const resolving = {
    ...allowing('10.1.0.0/16'),
    outboundProxy: {
      host: 'proxy',
      port: 3128,
      tls: false,
      login: null,
      resolvesNames: true,
      exceptions: { names: ['hooks.internal', 'shop.example'], ranges: [] },
    },
  };

  it.each(['https://example.com/', 'https://example.com:443/x', 'https://example.com./'])(
    'include %s',
    (url) => expect(findTargetUrlIssue(url, resolving)?.message).toBeUndefined(),
  );

  it.each([
    'https://internal-host/',
    'https://metadata.google.internal/',
    'https://localhost.localdomain/',
    'https://api:3000/',
    'https://example.com:8443/',
    'https://example.com:80/',
    'https://example.com.:5432/',
  ])('do not include %s', (url) => {
    expect(findTargetUrlIssue(url, resolving)?.message).toBe('must be publicly reachable');
    expect(isBlockedHost(new URL(url), resolving)).toBe(true);
  });

  it('are none of its exceptions, which are looked up here', () => {
    for (const url of ['https://hooks.internal/', 'https://shop.example:8443/']) {
      expect(findTargetUrlIssue(url, resolving)?.message).toBeUndefined();
    }
  });
});

describe('rules that name services', () => {
  const rules = { ...PUBLIC_ONLY, onlyNames: ['fcm.example', '.push.example'] };

  it.each([
    'https://fcm.example/a?b',
    'https://FCM.example./a',
    'https://fcm.example:443/',
    'https://web.push.example/',
    'https://a.b.push.example/',
    'https://ｆcm。example/',
  ])('allow %s', (url) => expect(findTargetUrlIssue(url, rules)?.message).toBeUndefined());

  it.each([
    'https://push.example/',
    'https://fcm.example:8443/',
    'https://xfcm.example/',
    'https://fcm.example.evil.example/',
    'https://evilpush.example/',
    'https://example.com/',
    'https://internal-host/',
    'https://8.8.8.8/',
    'https://10.0.0.1/',
    'https://localhost/',
  ])('refuse %s', (url) => {
    expect(findTargetUrlIssue(url, rules)?.message).toBe(
      'must be an address of a service that this one sends to',
    );
    expect(isBlockedHost(new URL(url), rules)).toBe(true);
  });
});

describe('isBlockedAddress', () => {
  it('blocks every text that is not an address', () => {
    for (const text of ['', 'example.com', 'fe80::1%eth0', '1.2.3.4/8', 'fd00:ec2::254%eth0']) {
      expect(isBlockedAddress(text, PUBLIC_ONLY)).toBe(true);
    }
  });
});

it('parseLiteralAddress returns the address of a literal, and undefined for a name', () => {
  expect(parseLiteralAddress('[::1]')).toBe('::1');
  expect(parseLiteralAddress('8.8.8.8')).toBe('8.8.8.8');
  expect(parseLiteralAddress('example.com')).toBeUndefined();
  expect(isLocalName('localhost.example.com')).toBe(false);
});
