import { ArrayMaxSize, ArrayNotEmpty, IsArray } from 'class-validator';
import { Check, Field, type FieldKind, type FieldOptions } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { defineKind, field } from '#platform/http/resource-fields.js';
import {
  IntegerProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
  TextsProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import {
  CHANNELS,
  isChannel,
  UNREACHED_REASONS,
  type HolderChannel,
  type Reach,
  type UnreachedReason,
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
export class ByChannelJson {
  @IntegerProperty({ example: 60, description: 'On the pass in Apple Wallet or Google Wallet.' })
  declare readonly wallet: number;
  @IntegerProperty({ example: 10, description: 'In the browser in which the card was opened.' })
  declare readonly web_push: number;
  @IntegerProperty({ example: 12, description: 'By e-mail.' }) declare readonly email: number;
  @IntegerProperty({ example: 5, description: 'By SMS.' }) declare readonly sms: number;
}

@Dto('UnreachedReason')
class ReasonJson {
  @OneOfProperty(CHANNELS, { example: 'email', description: 'The channel.' })
  declare readonly channel: HolderChannel;
  @OneOfProperty(UNREACHED_REASONS, {
    example: 'no_consent',
    description: 'Why it does not reach them.',
  })
  declare readonly reason: UnreachedReason;
  @IntegerProperty({ example: 20, description: 'How many of the unreached that is true of.' })
  declare readonly people: number;
}

@Dto('Reach')
export class ReachJson {
  @IntegerProperty({ example: 120, description: 'The customers whom the message is for.' })
  declare readonly people: number;
  @IntegerProperty({ example: 87, description: 'Those of them whom one of the channels reaches.' })
  declare readonly reached: number;
  @ObjectProperty(() => ByChannelJson, { description: 'How many by each channel.' })
  declare readonly by_channel: ByChannelJson;
  @IntegerProperty({ example: 33, description: 'Those whom no channel reaches.' })
  declare readonly unreached: number;
  @ObjectsProperty(() => ReasonJson, {
    description: 'Why the channels do not reach those; everybody counts once for each channel.',
  })
  declare readonly reasons: ReasonJson[];
}

export function toReachJson({ people, reached, byChannel, reasons }: Reach): ReachJson {
  return {
    people,
    reached,
    by_channel: {
      wallet: byChannel.wallet,
      web_push: byChannel.web_push,
      email: byChannel.email,
      sms: byChannel.sms,
    },
    unreached: people - reached,
    reasons: reasons.map(({ channel, reason, people: count }) => ({
      channel,
      reason,
      people: count,
    })),
  };
}
