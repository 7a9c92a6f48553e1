import { describe, expect, it } from '@jest/globals';
import { parseMailbox } from './mailbox.js';

describe('the mailbox of an address', () => {
  it.each([
    ['ann@shop.example', 'ann@shop.example'],
    ['Ann@Shop.EXAMPLE', 'ann@shop.example'],
    ['ann+one@shop.example', 'ann@shop.example'],
    ['ann+one+two@shop.example', 'ann@shop.example'],
    ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
    ['ann@xn--bcher-kva.example', 'ann@xn--bcher-kva.example'],
    ['ａｎｎ@shop.example', 'ann@shop.example'],
    ['"a@b"@shop.example', '"a@b"@shop.example'],
    ['+tag@shop.example', '@shop.example'],
    ['ann@[192.0.2.1]', 'ann@[192.0.2.1]'],
    ['no address', 'no address@'],
    ['', '@'],
  ])('%s is %s', (address, mailbox) => expect(parseMailbox(address)).toBe(mailbox));
});
