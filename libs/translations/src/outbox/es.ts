import type { OutboxTexts } from './en.js';

export const outbox: OutboxTexts = {
  about: 'Los enlaces a sus tarjetas que reciben sus clientes por correo y SMS.',
  holds: 'Algunos mensajes no se han enviado. Abra uno para ver por qué y para enviarlo más tarde.',
  none: 'Todavía no hay mensajes',
  noneWhy: 'Aparecen aquí en cuanto un cliente recibe el enlace a su tarjeta.',
  caption: 'Mensajes, los más recientes primero',
  to: 'Para',
  kind: 'Tipo',
  requested: 'Solicitado',
  state: 'Estado',
  show: 'Ver',
  showOf: (customer) => `el mensaje para ${customer}`,
  title: (customer) => `Mensaje para ${customer}`,
  requestedOn: (channel, time) => `${channel}, solicitado el ${time}`,
  all: 'Todos los mensajes',
  onItsWay: 'Está en camino.',
  reference: 'Referencia del proveedor:',
  send: 'Enviar ahora',
  preview: 'Vista previa',
  noAddress: 'sin dirección',
  subject: 'Asunto',
  previewWhy: 'Así se enviaría ahora: Inkpad no guarda ni la dirección ni el texto.',
  channels: { email: 'Correo', sms: 'SMS' },
  states: {
    queued: 'En camino',
    held: 'Aún sin enviar',
    sent: 'Enviado',
    failed: 'Fallido',
    dropped: 'No enviado',
    delivered: 'Entregado',
    undelivered: 'No entregado',
  },
  handedOver: {
    email: (time) => `Entregado al servidor de correo el ${time}.`,
    sms: (time) => `Entregado al proveedor de SMS el ${time}.`,
  },
  unknownArrival: 'Inkpad no puede saber si ha llegado.',
  arrived: 'Ha llegado.',
  notArrived: 'No se ha podido entregar. Compruebe el número del cliente.',
  soon: 'Se enviará en un momento.',
  retrying: (text, count) =>
    `Todavía no se ha podido enviar, tras ${text} ${count === 1 ? 'intento' : 'intentos'}. Inkpad sigue intentándolo durante un día.`,
  held: (reason) =>
    `No se ha enviado nada. El motivo: ${reason}. Cuando eso cambie, podrá enviarlo aquí.`,
  failed:
    'No se ha podido enviar, e Inkpad no volverá a intentarlo. Compruebe la dirección del cliente.',
  erased: 'No se ha enviado nada, porque los datos del cliente se borraron.',
  dropped: (reason) =>
    `No se ha enviado nada. El motivo: ${reason}. Cuando el cliente tenga una dirección, se podrá enviar.`,
  forAdministrator: (details) => `Para su administrador: ${details}.`,
  errorCode: (code) => `error ${code}`,
  reasons: {
    'no mail server is set up (SMTP_URL)': 'este servicio aún no envía correos',
    'no SMS provider is set up (SMS_URL)': 'este servicio aún no envía SMS',
    'too many people signed up from the same network today, or at this store in all':
      'hoy se han registrado demasiadas personas desde la misma red o en este negocio',
    'no phone number was entered when signing up':
      'no se introdujo ningún número de teléfono al registrarse',
    'the store has sent too many SMS': 'el negocio ha enviado demasiados SMS hoy',
    'the store sends no SMS to {} (Settings, Other countries)': (country = '') =>
      `el negocio no envía SMS a este país (${country}); puede añadirlo en los ajustes`,
    'too many messages went to this address today':
      'hoy se han enviado demasiados mensajes a esta dirección',
    'there is no address': 'no hay ninguna dirección',
    'the phone number has no country code': 'al número de teléfono le falta el prefijo del país',
    'the phone number is of a kind that gets no SMS': 'a este tipo de número no se envían SMS',
  },
};
