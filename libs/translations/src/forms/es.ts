import type { FormTexts } from './en.js';

const INVISIBLE = 'Quite los caracteres invisibles. Suelen venir al copiar un texto.';
const REQUIRED = 'Rellene este campo.';
const EMAIL = 'Introduzca una dirección de correo completa, por ejemplo nombre@tienda.example.';
const RANGE = (min = '', max = '') => `Introduzca un número de ${min} a ${max}.`;
const HTTPS = 'Introduzca una dirección que empiece por https://.';
const ROLE = 'Elija un rol.';
const OPTION = 'Elija una de las opciones.';
const TIME_ZONE = 'Elija una zona horaria.';
const LANGUAGE = 'Elija un idioma.';
const COUNTRY = 'Elija un país.';

export const forms: FormTexts = {
  optional: 'opcional',
  show: 'Mostrar',
  hide: 'Ocultar',
  showPassword: 'Mostrar la contraseña',
  hidePassword: 'Ocultar la contraseña',
  copy: 'Copiar',
  copied: 'Copiado',
  share: 'Compartir',
  check: (text, count) => (count === 1 ? 'Revise un campo' : `Revise ${text} campos`),
  errorsInTitle: (text, count) => `${text} ${count === 1 ? 'error' : 'errores'}`,
  other: (message) => `No se ha aceptado (it ${message}).`,
  notFound: 'Esto ya no existe. Vuelva a cargar la página.',
  messages: {
    'is required': REQUIRED,
    'must not be blank': REQUIRED,
    'must have 1 to {} characters': (max = '') => `Introduzca de 1 a ${max} caracteres.`,
    'must have at least {} characters': (min = '') => `Use al menos ${min} caracteres.`,
    'must have at most {} characters': (max = '') => `Use como máximo ${max} caracteres.`,
    'must not contain control or invisible characters': INVISIBLE,
    'may have only {} in braces': (list) => `Entre llaves, escriba solo ${list}.`,
    'must not contain NUL': INVISIBLE,
    'must be a string': 'Introduzca un texto.',
    'must be a number': 'Introduzca un número.',
    'must be an integer': 'Introduzca un número entero.',
    'must be from {} to {}': RANGE,
    'must be between {} and {}': RANGE,
    'must be at least {}': (min = '') => `Introduzca ${min} o más.`,
    'must be at most {}': (max = '') => `Introduzca ${max} o menos.`,
    'must be in the future': 'Elija un momento futuro.',
    'must not be in the future': 'Esto queda en el futuro. Revíselo.',
    'is not an e-mail address': EMAIL,
    'must be an e-mail address': EMAIL,
    'must be a phone number': 'Esto no es un número de teléfono. Revíselo.',
    'looks like a spreadsheet has changed it':
      'Una hoja de cálculo ha cambiado este número. Escríbalo de nuevo.',
    'must be a phone number such as +49 721 123456':
      'Introduzca un número de teléfono, por ejemplo +34 912 345 678.',
    'must be a web address such as https://cafe.example, without spaces and "#"':
      'Introduzca una dirección web, por ejemplo https://cafe.example.',
    'must be an e-mail address such as hello@cafe.example':
      'Introduzca una dirección de correo completa, por ejemplo nombre@shop.example.',
    'must be a real date such as 1990-05-31': 'Esta fecha no existe. Revísela.',
    'must be a colour such as #6B4226': 'Elija un color.',
    'must begin with https://': HTTPS,
    'must start with https://': HTTPS,
    'must be an address that begins with https://, without spaces, backslashes and "#"':
      'Introduzca una dirección que empiece por https://, sin espacios, barras invertidas ni «#».',
    'is used by another user': 'Otra persona ya inicia sesión con esta dirección.',
    'is wrong': 'No es correcto. Inténtelo de nuevo.',
    'must be another one than your first password':
      'Elija una contraseña distinta de la que ha recibido.',
    'is wrong. Sign in with your company again: then no password is asked for within ten minutes':
      'No es correcto. Si inicia sesión con su empresa, quizá no tenga contraseña aquí. Inicie sesión de nuevo con su empresa: durante diez minutos no se pide ninguna contraseña.',
    'is wrong. Wait for the next one, and check that the clock of your phone is right':
      'Este código no es correcto. Espere al siguiente y compruebe que el reloj de su teléfono está en hora.',
    'was changed too often. Try again in an hour':
      'La dirección se ha cambiado demasiadas veces. Inténtelo de nuevo en una hora.',
    'has received too many e-mails today. Try again tomorrow':
      'Esta dirección ha recibido demasiados correos hoy. Inténtelo de nuevo mañana.',
    'is too easy to guess: use characters that do not repeat or follow one another':
      'Es demasiado fácil de adivinar. Evite caracteres repetidos o consecutivos.',
    'is too easy to guess, since many people use it or one like it: use several words that do not belong together':
      'Es demasiado fácil de adivinar: mucha gente la usa. Consejo: unas cuantas palabras al azar.',
    'is too easy to guess: use more than your name, your address, the name of your store or of this service':
      'Es demasiado fácil de adivinar. Use algo más que su nombre, su dirección o el nombre de su negocio o de este servicio.',
    'belongs to the store already': 'Esta persona ya tiene acceso a este negocio.',
    'was invited a moment ago': 'Acaban de invitar a esta persona.',
    'There are {} open invitations already': (max = '') => `Ya hay ${max} invitaciones pendientes.`,
    'Withdraw some of them first': 'Retire antes algunas.',
    'There is an account with this address: sign in':
      'Ya hay una cuenta con esta dirección. Inicie sesión.',
    'This invitation is for {}': (email = '') => `Esta invitación es para ${email}.`,
    'This is the only owner of the store': 'Es la única persona propietaria del negocio.',
    'Make somebody else an owner first': 'Dé antes este rol a otra persona.',
    'Please choose a role': ROLE,
    'is not a role': ROLE,
    'is not a choice': OPTION,
    'must be one of {}': OPTION,
    'There are {} tokens already': (max = '') => `Ya hay ${max} tokens de API.`,
    'Revoke tokens that are not used any more': 'Revoque los que ya no se usen.',
    'This token is used for other stores as well': 'Este token se usa también para otros negocios.',
    'Remove its user from this store, or have the user revoke the token':
      'Quite a la persona de este negocio o pídale que revoque el token.',
    'must be a time zone such as Europe/Berlin': TIME_ZONE,
    'is not a known time zone': TIME_ZONE,
    'must be a language': LANGUAGE,
    'is not a language tag': LANGUAGE,
    'must be a country': COUNTRY,
    'must name at least one channel': 'Elija al menos un canal.',
    'must be from 1 to 10 stamps for stamps_away': 'Escriba un número de 1 a 10.',
    'must be from 1 to 365 days for reward_unused': 'Escriba un número de 1 a 365.',
    'must be from 1 to 730 days for inactive': 'Escriba un número de 1 a 730.',
    'must be within the next {} days': () => 'Elija un momento de los próximos doce meses.',
    'A store may send {} announcements in 24 hours': (max = '') =>
      `Solo se pueden enviar ${max} mensajes en 24 horas.`,
    'Send it at another time': 'Envíelo en otro momento.',
    'The announcement was cancelled: create another one': 'El mensaje se canceló. Escriba otro.',
    'The announcement is being sent already, or was sent':
      'El mensaje ya se está enviando, o se envió.',
    'must be a time of day such as 21:00': 'Escriba una hora, por ejemplo 21:00.',
    'is required together with quiet_to': 'Rellene las dos horas, o ninguna.',
    'is required together with quiet_from': 'Rellene las dos horas, o ninguna.',
    'must differ from quiet_from': 'Escriba dos horas distintas.',
    'must be a form of address': 'Elija uno de los tratamientos.',
    'is not an ISO 3166-1 country code such as DE': COUNTRY,
    'has {}, which is not a country code such as AT': (code = '') =>
      `${code} no es un país. Dos letras para cada uno, por ejemplo AT.`,
    'The texts must come to at most 8 KiB together':
      'Los textos son demasiado largos en conjunto. Acórtelos.',
    'The number of {} has reached its limit': 'No se pueden añadir más: se ha alcanzado el límite.',
    'must be in the years 1 to 9999 in every time zone': 'Escriba una fecha válida.',
    'must not be 0': 'Introduzca 1 o más.',
    'This event was already reversed': 'Ya se había deshecho.',
    'This event is itself a reversal':
      'Esta entrada no se puede deshacer. Corrija los sellos en su lugar.',
    'Only a stamping, a redemption or an adjustment can be reversed':
      'Esta entrada no se puede deshacer. Corrija los sellos en su lugar.',
    'These stamps were moved by merging or unmerging customers':
      'Esta entrada no se puede deshacer. Corrija los sellos en su lugar.',
    'This takes {} stamps and the card holds {}': 'No hay suficientes sellos en la tarjeta.',
    'This reward takes {} stamps and the card holds {}': 'No hay suficientes sellos en la tarjeta.',
    'This card expired at {}': 'La tarjeta ha caducado.',
    'This customer was erased': 'Esta persona se ha borrado.',
    'Customer {} was merged into customer {} later': 'Después hubo otra unión. Deshágala primero.',
    'Customer {} was merged into customer {}': 'Este cliente se unió a otro.',
    'Customer {} is not merged into customer {}': 'Estos dos clientes no están unidos.',
    'Customer {} would be left without an e-mail address and a phone number':
      'Uno de los dos se quedaría sin correo ni teléfono.',
    'They would be one person of more than {} customers': (max) =>
      `No se pueden unir más de ${max} clientes en uno.`,
    'One person would have more than {} cards': (max) =>
      `Una persona no puede tener más de ${max} tarjetas, contando las antiguas.`,
    'is the customer itself': 'Es el mismo cliente.',
    'This card was merged into {}': 'Este cliente se unió a otro.',
    'is a card that the customer already has': 'El cliente ya tiene esta tarjeta.',
    'An e-mail address or a phone number is needed': 'Escriba un correo o un teléfono.',
    'is already used by another customer': 'Otro cliente ya lo tiene.',
    'must be a URL such as https://example.com/hooks, without spaces, backslashes and "#"':
      'Escriba una dirección https pública, por ejemplo https://shop.example/webhooks.',
    'must not contain credentials': 'Quite el usuario y la contraseña de la dirección.',
    'must be publicly reachable':
      'Esta dirección lleva a una red privada. Escriba una dirección pública.',
    'must name at least one event': 'Elija al menos un evento.',
    'is required (or event)': 'Elija al menos un evento.',
    'must be a list of {}': 'Elija de la lista.',
    'flat needs exactly one named event':
      'El formato «Solo los datos» necesita un único evento. Elija uno, o el otro formato.',
    'must be an object of header names and values':
      'Escriba cada cabecera como «Nombre: valor», como mucho diez.',
    'must have at most {} headers': 'Escriba cada cabecera como «Nombre: valor», como mucho diez.',
    '{} does not belong to this store': 'Elija de la lista.',
    'must be after from': 'El final debe ser posterior al principio.',
    'must be an ISO 8601 time such as 2026-01-31T12:00:00Z': 'Escriba una fecha válida.',
    'The subscription is disabled': 'El webhook está en pausa. Actívelo primero.',
    'Another replay of this subscription is still running':
      'Todavía se está enviando un periodo anterior. Inténtelo más tarde.',
    'The event is no longer kept': 'El evento ya no se conserva, así que no se puede reenviar.',
    'Other tests of this store are still running':
      'Hay otras pruebas en curso. Inténtelo en un momento.',
    'must be less than stamps_required': 'Deben ser menos que los sellos de una tarjeta completa.',
    'must be less than stamps_required ({})':
      'Deben ser menos que los sellos de una tarjeta completa.',
    'must be a picture of the type {}':
      'Este archivo no es una imagen legible. Elija un PNG, JPEG o WebP de 2 MB como máximo.',
    'cannot be read as a picture: it must be whole, have at most {} megapixels and no more than {} scans, and be quick to decode':
      'Este archivo no es una imagen legible. Elija un PNG, JPEG o WebP de 2 MB como máximo.',
    'A store can upload at most {} different pictures':
      'Su negocio ya no puede subir más imágenes. Elija un dibujo.',
  },
};
