import { ArrayMaxSize, ArrayNotEmpty, IsArray } from 'class-validator';
import {
  Check,
  Field,
  TextField,
  type FieldKind,
  type FieldOptions,
} from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  IntegerProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
} from '#platform/http/response-fields.js';
import {
  CHANNELS,
  UNREACHED_REASONS,
  type HolderChannel,
  type Reach,
  type UnreachedReason,
} from './message-channel.js';
import { ISSUES } from '#translations/issues.js';

export const TITLE = { max: 60, example: 'Closed on Monday' };
export const TEXT = { max: 300, example: 'We are back on Tuesday at eight.' };

/** Describes the fields that several classes have. */
export const DESCRIPTIONS = {
  title: 'The headline, such as the subject of an e-mail.',
  text: 'What it says.',
  channels:
    'The channels in the order of preference. Each customer gets it by the first one that reaches them.',
};

/** Declares the title of a message. */
export const TitleField = (options: FieldOptions = {}): PropertyDecorator =>
  TextField({ ...TITLE, description: DESCRIPTIONS.title, ...options });

/** Declares the text of a message. */
export const MessageTextField = (options: FieldOptions = {}): PropertyDecorator =>
  TextField({ ...TEXT, description: DESCRIPTIONS.text, ...options });

/** Declares a list of channels. */
export function ChannelsField(options: FieldOptions): PropertyDecorator {
  const isChannel = (one: unknown) => CHANNELS.includes(one as HolderChannel);
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
  return Field(kind, {
    description: DESCRIPTIONS.channels,
    example: ['wallet', 'email'],
    ...options,
  });
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
    reasons: reasons.map((one) => ({
      channel: one.channel,
      reason: one.reason,
      people: one.people,
    })),
  };
}
