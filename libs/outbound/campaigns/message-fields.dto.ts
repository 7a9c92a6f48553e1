import { ArrayMaxSize, ArrayNotEmpty, IsArray } from 'class-validator';
import { Check, Field, type FieldKind, type FieldOptions } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { defineKind, derive, field } from '#platform/http/resource-fields.js';
import {
  ObjectProperty,
  ObjectsProperty,
  TextsProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import {
  CHANNELS,
  isChannel,
  UNREACHED_REASONS,
  type HolderChannel,
  type Reach,
} from '#outbound/messages/message-channel.js';
import { ISSUES } from '#translations/issues.js';

const channelsField = defineKind<HolderChannel[]>(ChannelsField, (docs) =>
  TextsProperty({ enum: CHANNELS }, docs),
);

/** Declares the fields of requests and responses that every message has. @param examples of what it says */
export const contentFields = (examples: { title: string; text: string }) => ({
  title: field.text({
    max: 60,
    example: examples.title,
    description: 'The headline, such as the subject of an e-mail.',
  }),
  text: field.text({ max: 300, example: examples.text, description: 'What it says.' }),
  channels: channelsField({
    default: [...CHANNELS],
    example: ['wallet', 'email'],
    description:
      'The channels in the order of preference. Each customer gets it by the first one that reaches them.',
  }),
});

/** Declares a time of responses that may be null. */
export const optionalTimeField = (description: string) =>
  field.response<string | null>(TimestampProperty({ nullable: true, description }));

function ChannelsField(options: FieldOptions): PropertyDecorator {
  const kind: FieldKind = {
    schema: {
      type: 'array',
      minItems: 1,
      maxItems: CHANNELS.length,
      // Not uniqueItems, of which OpenAPI Generator makes Java that does not compile.
      items: { type: 'string', enum: CHANNELS },
    },
    validators: [
      IsArray({ context: ISSUES.not_list_of_channels }),
      ArrayNotEmpty({ context: ISSUES.no_channel }),
      ArrayMaxSize(CHANNELS.length, {
        context: ISSUES.too_many_channels({ max: CHANNELS.length }),
      }),
      Check((channels: unknown[]) =>
        channels.every(isChannel)
          ? undefined
          : ISSUES.unknown_channel({ channels: CHANNELS.join(', ') }),
      ),
      Check((channels: unknown[]) =>
        new Set(channels).size === channels.length ? undefined : ISSUES.channel_repeated,
      ),
    ],
  };
  return Field(kind, options);
}

@Dto('ReachByChannel')
export class ByChannelJson extends derive.response({
  wallet: field.integer({
    example: 60,
    description: 'On the pass in Apple Wallet or Google Wallet.',
  }),
  web_push: field.integer({
    example: 10,
    description: 'In the browser in which the card was opened.',
  }),
  email: field.integer({ example: 12, description: 'By e-mail.' }),
  sms: field.integer({ example: 5, description: 'By SMS.' }),
}) {}

export function toByChannelJson({
  wallet,
  web_push,
  email,
  sms,
}: Record<HolderChannel, number>): ByChannelJson {
  return { wallet, web_push, email, sms };
}

const REASON = {
  channel: field.oneOf(CHANNELS, { example: 'email', description: 'The channel.' }),
  reason: field.oneOf(UNREACHED_REASONS, {
    example: 'no_consent',
    description: 'Why it does not reach them.',
  }),
  people: field.integer({
    example: 20,
    description: 'How many of the unreached that is true of.',
  }),
};

@Dto('UnreachedReason')
class ReasonJson extends derive.response(REASON) {}

export const REACH = {
  people: field.integer({ example: 120, description: 'The customers whom the message is for.' }),
  reached: field.integer({
    example: 87,
    description: 'Those of them whom one of the channels reaches.',
  }),
  by_channel: field.response<ByChannelJson>(
    ObjectProperty(() => ByChannelJson, { description: 'How many by each channel.' }),
  ),
  unreached: field.integer({ example: 33, description: 'Those whom no channel reaches.' }),
  reasons: field.response<ReasonJson[]>(
    ObjectsProperty(() => ReasonJson, {
      description: 'Why the channels do not reach those; everybody counts once for each channel.',
    }),
  ),
};

@Dto('Reach')
export class ReachJson extends derive.response(REACH) {}

const toReasonJson = derive.toJson(REASON);

export function toReachJson({ people, reached, byChannel, reasons }: Reach): ReachJson {
  return {
    people,
    reached,
    by_channel: toByChannelJson(byChannel),
    unreached: people - reached,
    reasons: reasons.map(toReasonJson),
  };
}
