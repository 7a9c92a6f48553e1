import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { addConsentToken } from './consent-links.js';
import { renderCardMail, renderCardSms } from './card-message-texts.js';
import { CardMessageContents, type FoundContent } from './card-message-contents.service.js';
import { CardMessagePictures } from './card-message-pictures.service.js';
import { chooseRoute, type HolderChannel } from './message-channel.js';
import type {
  Choice,
  LoadedMessage,
  Message,
  MessageKind,
  Rendered,
} from './message-sending.service.js';

/** Card links: by e-mail, else by SMS. Whoever has asked for one needs it, so it may rather come twice than not at all. */
@Injectable()
export class CardLinks implements MessageKind {
  readonly name = 'card_link';
  readonly channels = ['email', 'sms'] as const;
  readonly isSentOnce = false;
  readonly isRecorded = false;
  readonly limits = {
    reasons: { email: 'too_many_emails', sms: 'too_many_sms', address: 'too_many_to_address' },
    isAwaited: false,
  };

  constructor(
    private readonly contents: CardMessageContents,
    private readonly pictures: CardMessagePictures,
    private readonly keys: MasterKeys,
    private readonly config: Config,
  ) {}

  async load({ customerCardId }: Message): Promise<LoadedMessage | undefined> {
    if (customerCardId === null) throw new Error('the card is not issued yet');
    const details = await this.contents.find(customerCardId);
    return (
      details && {
        customerId: details.customerId,
        skipReason: null,
        audibleAt: 0,
        choose: (refused) => this.choose(details, refused),
        render: (channel) => this.render(details, channel),
      }
    );
  }

  private choose(
    { contact, smsCountries }: FoundContent,
    refused: readonly HolderChannel[],
  ): Choice {
    // Beside an e-mail, which this customer does not get: the other message goes by SMS.
    if (contact.email === null && refused.includes('email')) {
      return { channel: null, reason: 'no_address' };
    }
    const { mail, sms } = this.config;
    const channels = { email: mail !== null, sms: sms !== null, smsCountries };
    const route = chooseRoute(contact, channels, refused);
    if (route.kind === 'drop') return { channel: null, reason: route.reason };
    return { channel: route.channel, reason: route.kind === 'hold' ? route.reason : null };
  }

  private async render(details: FoundContent, channel: HolderChannel): Promise<Rendered> {
    const { contact, content, pictured, unconfirmedConsents } = details;
    const { email, phone } = contact;
    const customerCardId = null;
    const kind = channel === 'email' ? 'marketing' : 'sms';
    const asksConsent = unconfirmedConsents.includes(kind);
    const key = this.keys.getDataKey('consent links');
    const linked = asksConsent
      ? { ...content, link: addConsentToken(content.link, key, details, kind) }
      : content;
    if (channel === 'email' && email !== null) {
      const pictures = await this.pictures.drawIfPossible(pictured);
      const mail = { to: email, ...renderCardMail(linked, pictures, asksConsent) };
      return { kind: 'email', mail, customerCardId };
    }
    if (channel === 'sms' && phone !== null) {
      const text = renderCardSms(linked, asksConsent);
      return { kind: 'sms', to: phone, text, customerCardId };
    }
    return { kind: 'unreachable', reason: 'no_address' };
  }
}
